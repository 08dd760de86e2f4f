import fc from "fast-check";
import { expect, test } from "vitest";
import { type Leak, LeakStream, leaksIn, maskSpans } from "../src/index.ts";

const seed = 20_261_119;
const keys = [
  `sk-${"aB3".repeat(14)}`,
  `ghp_${"a1B2".repeat(9)}`,
  `AIza${"Zz09_".repeat(7)}`,
  "xoxb-123456789012-abcdefABCDEF",
  `123456789:${"Ab-_9".repeat(7)}`,
];
const privateKey = `-----BEGIN RSA PRIVATE KEY-----\n${"MIIabc+/=\n".repeat(30)}-----END RSA PRIVATE KEY-----`;
const encodings = [
  (key: string) => key,
  (key: string) => Buffer.from(key).toString("base64"),
  (key: string) => Buffer.from(key).toString("hex"),
  (key: string) => [...Buffer.from(key)].map((byte) => `%${byte.toString(16)}`).join(""),
];

function run(block: boolean, chunks: readonly Buffer[]) {
  const leaks: Leak[] = [];
  const stream = new LeakStream({ block, onLeak: (leak) => leaks.push(leak) });
  const out = [...chunks.map((chunk) => Buffer.from(stream.push(chunk))), Buffer.from(stream.end())];
  return { leaks, text: Buffer.concat(out).toString("latin1") };
}

function pieces(text: string, sizes: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text, "latin1");
  const cut: Buffer[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    cut.push(Buffer.from(bytes.subarray(at, at + size)));
    at += size;
  }
  return cut;
}

const secret = fc.tuple(fc.constantFrom(...keys, privateKey), fc.constantFrom(...encodings));
const part = fc.oneof(
  secret.map(([key, encode]) => encode(key)),
  fc.constantFrom(" ", "\n", "key=", '"', "task-", "-----BEGIN ", "-----", "."),
  fc.integer({ min: 1, max: 3_000 }).map((length) => "aZ9/".repeat(length).slice(0, length)),
  fc.string({ maxLength: 40 }),
);
const scene = fc.record({
  text: fc.array(part, { maxLength: 10 }).map((parts) => Buffer.from(parts.join("")).toString("latin1")),
  sizes: fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 12 }),
});

function maskedIn(text: string, leaks: readonly Leak[]): string {
  const bytes = Buffer.from(text, "latin1");
  maskSpans(bytes, leaks);
  return bytes.toString("latin1");
}

test("a stream with keys is masked as the whole text would be, however it is cut", () => {
  fc.assert(
    fc.property(scene, ({ text, sizes }) => {
      const whole = maskedIn(text, leaksIn(text));
      const { text: out } = run(true, pieces(text, sizes));
      expect(out.length).toBe(text.length);
      for (let at = 0; at < text.length; at++) {
        if (whole[at] !== out[at]) expect(`${at} ${out[at]}`).toBe(`${at} *`);
      }
    }),
    { seed, numRuns: 1_500 },
  );
});

test("a key is found in a long word wherever it begins in it", () => {
  const [key = ""] = keys;
  for (const before of [0, 500, 1_000, 1_024, 2_500])
    for (const behind of [0, 900, 1_000, 1_020, 1_060, 2_000]) {
      const text = `${"x".repeat(before)}/${key}/${"y".repeat(behind)}`;
      for (const size of [before === 1_000 ? 1 : 61, 1_024, text.length]) {
        const { text: out, leaks } = run(true, pieces(text, [size]));
        expect(out.includes(key), `${before} ${behind} ${size}`).toBe(false);
        expect(leaks.length, `${before} ${behind} ${size}`).toBe(1);
        expect(run(false, pieces(text, [size])).leaks.length, `${before} ${behind} ${size}`).toBe(1);
      }
    }
});

test("a private key that pauses between its lines is held back until its last, and masked", () => {
  const leaks: Leak[] = [];
  const stream = new LeakStream({ block: true, onLeak: (leak) => leaks.push(leak) });
  const out = privateKey.split("\n").flatMap((line) => {
    const passed = stream.push(Buffer.from(`${line}\n`));
    return [Buffer.from(passed), Buffer.from(stream.isWaiting ? stream.release() : "")];
  });
  out.push(Buffer.from(stream.push(Buffer.from("after\n"))), Buffer.from(stream.end()));
  expect(Buffer.concat(out).toString()).toBe(`${"*".repeat(privateKey.length)}\nafter\n`);
  expect(leaks).toHaveLength(1);
});

test("what comes of a key after a pause within it is masked", () => {
  const stream = new LeakStream({ block: true, onLeak: () => {} });
  const [key = ""] = keys;
  const out = [stream.push(Buffer.from(key.slice(0, 10))), stream.release()].map(String).join("");
  const rest = String(stream.push(Buffer.from(`${key.slice(10)}\n`)));
  expect(out).toBe(key.slice(0, 10));
  expect(rest).toBe(`${"*".repeat(key.length - 10)}\n`);
});

test("many first lines of private keys without an end are read once each, and not held back for ever", () => {
  const first = "-----BEGIN RSA PRIVATE KEY-----\n";
  let held = 0;
  const stream = new LeakStream({ block: true, onLeak: () => {} });
  let out = 0;
  const text = first.repeat(4_000);
  for (let at = 0; at < text.length; at += 64) {
    out += stream.push(Buffer.from(text.slice(at, at + 64))).length;
    held = Math.max(held, at + 64 - out);
  }
  out += stream.end().length;
  expect(out).toBe(text.length);
  expect(held).toBeLessThan(40_000);
});
