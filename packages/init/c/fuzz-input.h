/* What the fuzzers have in common: a random sequence that a seed repeats, and mutated archives. */
#ifndef BERTH_FUZZ_INPUT_H
#define BERTH_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

void fuzz_seed(const char *text);
uint64_t fuzz_random(void);
/* 0 for a bound of 0. */
size_t fuzz_below(size_t bound);

/* Changes some bytes of a tar archive, or cuts it. */
void fuzz_mutate_archive(uint8_t *bytes, size_t *length);
/* Otherwise nearly every mutation would end at the first sum. */
void fuzz_mend_sums(uint8_t *bytes, size_t length);

/* Where a process that is root can do less: as nobody, who owns the directory. Returns an errno. */
int fuzz_drop_root(const char *dir);

#endif
