import fc from "fast-check";
import { expect, test } from "vitest";
import { formsOf, Scrubber, ScrubStream } from "../src/index.ts";

const seed = 20_261_118;
/** Few different bytes, so that secrets overlap, begin alike and are within one another. */
const narrow = fc
  .array(fc.constantFrom(..."aab/+%k"), { minLength: 8, maxLength: 20 })
  .map((bytes) => Buffer.from(bytes.join("")));
const wide = fc.uint8Array({ minLength: 8, maxLength: 60 }).map((bytes) => Buffer.from(bytes));
const secret = fc.oneof(narrow, wide);
const noise = fc.oneof(
  fc.array(fc.constantFrom(..."aab/+%k"), { maxLength: 60 }).map((bytes) => Buffer.from(bytes.join(""))),
  fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes)),
);
const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 60 });

/** Slow and plain: every occurrence of every form. */
function masked(text: Buffer, secrets: readonly Buffer[]): Buffer {
  const result = Buffer.from(text);
  for (const form of secrets.flatMap(formsOf))
    for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + 1))
      result.fill("*", at, at + form.length);
  return result;
}

function pieces(text: Buffer, sizes: readonly number[]): Buffer[] {
  const cut: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    if (at >= text.length) break;
    cut.push(Buffer.from(text.subarray(at, at + size)));
    at += size;
  }
  if (at < text.length) cut.push(Buffer.from(text.subarray(at)));
  return cut;
}

function streamed(stream: ScrubStream, chunks: readonly Buffer[]): Buffer {
  const out = chunks.map((chunk) => {
    const leaving = Buffer.concat(stream.push(chunk));
    chunk.fill(0);
    return leaving;
  });
  return Buffer.concat([...out, stream.end()]);
}

/** Secrets in one of their forms, between other bytes. */
const scene = fc.array(secret, { minLength: 1, maxLength: 5 }).chain((secrets) =>
  fc.record({
    secrets: fc.constant(secrets),
    parts: fc.array(fc.oneof(noise, fc.constantFrom(...secrets.flatMap(formsOf))), { maxLength: 12 }),
    sizes: cuts,
  }),
);

test("every form of a secret is masked and no other byte is changed, however the stream is cut", () => {
  fc.assert(
    fc.property(scene, ({ secrets, parts, sizes }) => {
      const text = Buffer.concat(parts);
      const { matcher } = new Scrubber(secrets);
      const out = streamed(new ScrubStream(() => matcher), pieces(text, sizes));
      expect(out.toString("latin1")).toBe(masked(text, secrets).toString("latin1"));
    }),
    { seed, numRuns: 3_000 },
  );
});

test("a secret that pauses cut in two shows at most its first four bytes", () => {
  fc.assert(
    fc.property(scene, ({ secrets, parts, sizes }) => {
      const text = Buffer.concat(parts);
      const { matcher } = new Scrubber(secrets);
      const stream = new ScrubStream(() => matcher);
      const out = pieces(text, sizes).flatMap((chunk) => [
        Buffer.concat(stream.push(chunk)),
        Buffer.from(stream.release()),
      ]);
      const all = Buffer.concat([...out, stream.end()]);
      const wanted = masked(text, secrets);
      expect(all.length).toBe(text.length);
      for (let at = 0; at < all.length; at++)
        if (all[at] !== wanted[at]) {
          expect(all[at]).toBe(text[at]);
          // What was shown too early is the beginning of something masked.
          expect(wanted.indexOf("****", at)).toBeLessThanOrEqual(at + 4);
        }
      for (const form of secrets.flatMap(formsOf))
        expect(all.includes(form) && !wanted.includes(form)).toBe(false);
    }),
    { seed, numRuns: 2_000 },
  );
});

test("a secret that becomes known while its beginning is held back is masked", () => {
  const before = new Scrubber([Buffer.from("first-secret-1")]);
  const after = new Scrubber([Buffer.from("first-secret-1"), Buffer.from("first-second-2")]);
  let current = before;
  const stream = new ScrubStream(() => current.matcher);
  const first = Buffer.concat(stream.push(Buffer.from("say first-sec"))).toString();
  current = after;
  const rest = Buffer.concat(stream.push(Buffer.from("ond-2!"))).toString() + stream.end().toString();
  expect(first + rest).toBe("say **************!");
});

test("base64 of a secret is masked wherever it begins within other bytes", () => {
  const value = Buffer.from("sk-live-0123456789abcdef");
  const scrubber = new Scrubber([value]);
  for (const before of ["", "x", "xy", "xyz"]) {
    const encoded = Buffer.concat([Buffer.from(before), value, Buffer.from("tail")]);
    const shown = scrubber.maskText(encoded.toString("base64"));
    expect(Buffer.from(shown.replaceAll("*", "A"), "base64").includes(value.subarray(0, 6))).toBe(false);
    expect(shown.match(/\*/g)?.length).toBeGreaterThanOrEqual(30);
  }
});

test("hex and URL-encoded forms are masked in upper and lower case", () => {
  const value = Buffer.from("p@ss word/+ü?");
  const scrubber = new Scrubber([value]);
  const forms = [
    value.toString("hex"),
    value.toString("hex").toUpperCase(),
    encodeURIComponent(value.toString()),
    encodeURIComponent(value.toString()).replaceAll(/%../g, (code) => code.toLowerCase()),
    encodeURIComponent(value.toString()).replaceAll("%20", "+"),
    [...value].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join(""),
  ];
  for (const form of forms) expect(scrubber.maskText(`<${form}>`)).toBe(`<${"*".repeat(form.length)}>`);
});

test("values of less than eight bytes are left alone", () => {
  expect(new Scrubber([Buffer.from("short12")]).maskText("short12")).toBe("short12");
});

test("a text that was cut off within a secret shows less than eight bytes of it", () => {
  const scrubber = new Scrubber([Buffer.from("0123456789abcdefghij")]);
  expect(scrubber.maskPieces("key=0123456789abc… is not there")).toBe("key=*************… is not there");
  expect(scrubber.maskPieces("key=01234")).toBe("key=01234");
});

test("output made to look like many secrets at once is read once or twice, not once for each", () => {
  const alike = Array.from({ length: 300 }, (_, index) => Buffer.from(`${"a".repeat(180)}${index}-end`));
  const { matcher } = new Scrubber(alike);
  const text = Buffer.alloc(2 ** 20, "a");
  const startedMs = performance.now();
  matcher?.find(text);
  expect(performance.now() - startedMs).toBeLessThan(2_000);
});
