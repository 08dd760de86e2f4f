#include "sha256.h"

#include <stdbool.h>
#include <string.h>

#include "bytes.h"

static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t rotate(uint32_t x, unsigned by)
{
    return x >> by | x << (32 - by);
}

static void compress(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64];
    for (int i = 0; i < 16; i++)
        w[i] = get_u32(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + k[i] + w[i];
        uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

/* Six times as fast where the processor can: hashing was the largest part of reading or writing a large file. */
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

__attribute__((target("sha,sse4.1,ssse3"))) static void compress_sha_ni(uint32_t state[8], const uint8_t *block, size_t blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bULL, 0x0405060700010203ULL);
    __m128i dcba = _mm_loadu_si128((const __m128i *)state), hgfe = _mm_loadu_si128((const __m128i *)(state + 4));
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xB1), efgh = _mm_shuffle_epi32(hgfe, 0x1B);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
    for (; blocks > 0; blocks--, block += 64) {
        __m128i abef0 = abef, cdgh0 = cdgh, m[4];
        for (int i = 0; i < 4; i++)
            m[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(block + 16 * i)), swap);
        for (int i = 0; i < 16; i++) {
            __m128i w = m[i & 3];
            if (i >= 4) {
                w = _mm_sha256msg1_epu32(m[i & 3], m[(i + 1) & 3]);
                w = _mm_add_epi32(w, _mm_alignr_epi8(m[(i + 3) & 3], m[(i + 2) & 3], 4));
                w = _mm_sha256msg2_epu32(w, m[(i + 3) & 3]);
                m[i & 3] = w;
            }
            __m128i wk = _mm_add_epi32(w, _mm_loadu_si128((const __m128i *)(k + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0E));
        }
        abef = _mm_add_epi32(abef, abef0);
        cdgh = _mm_add_epi32(cdgh, cdgh0);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

static bool has_sha_ni(void)
{
    static int known = -1;
    unsigned a, b, c, d;
    if (known < 0)
        known = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1) && (c & bit_SSSE3) && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
    return known > 0;
}
#endif

static void compress_all(uint32_t state[8], const uint8_t *block, size_t blocks)
{
#if defined(__x86_64__)
    if (has_sha_ni()) {
        compress_sha_ni(state, block, blocks);
        return;
    }
#endif
    for (; blocks > 0; blocks--, block += 64)
        compress(state, block);
}

void sha256_begin(struct sha256 *hash)
{
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, initial, sizeof initial);
    hash->length = 0;
    hash->used = 0;
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    hash->length += length;
    if (hash->used > 0) {
        size_t part = min_size(length, sizeof hash->block - hash->used);
        memcpy(hash->block + hash->used, at, part);
        hash->used += part;
        at += part;
        length -= part;
        if (hash->used < sizeof hash->block)
            return;
        compress_all(hash->state, hash->block, 1);
        hash->used = 0;
    }
    size_t whole = length / sizeof hash->block;
    compress_all(hash->state, at, whole);
    at += whole * sizeof hash->block;
    length -= whole * sizeof hash->block;
    if (length > 0)
        memcpy(hash->block, at, length);
    hash->used = length;
}

void sha256_end(struct sha256 *hash, uint8_t out[32])
{
    uint64_t bits = hash->length * 8;
    uint8_t tail[72] = {0x80};
    size_t zeros = (hash->used < 56 ? 56 : 120) - hash->used;
    put_u64(tail + zeros, bits);
    sha256_add(hash, tail, zeros + 8);
    for (int i = 0; i < 8; i++)
        put_u32(out + 4 * i, hash->state[i]);
}
