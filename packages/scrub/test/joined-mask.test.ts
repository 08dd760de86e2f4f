import fc from "fast-check";
import { expect, test } from "vitest";
import { formsOf, JoinedMask, Scrubber, ScrubStream } from "../src/index.ts";

const seed = 20_261_119;
/** Few different bytes, so that values overlap, begin alike and are within one another. */
const narrow = fc
  .array(fc.constantFrom(..."aab/+%k"), { minLength: 8, maxLength: 16 })
  .map((bytes) => Buffer.from(bytes.join("")));
// The mask's own byte in a value would be a match that masking made.
const wide = fc
  .uint8Array({ minLength: 8, maxLength: 40 })
  .map((bytes) => Buffer.from(bytes.map((byte) => (byte === 0x2a ? 0x2b : byte))));
const secret = fc.oneof(narrow, wide);
const noise = fc
  .array(fc.constantFrom(..."aab/+%k"), { maxLength: 30 })
  .map((bytes) => Buffer.from(bytes.join("")));

interface Turn {
  readonly bytes: number;
  readonly stream: 0 | 1;
  readonly pauses: boolean;
  readonly ends: boolean;
}
const turns: fc.Arbitrary<Turn[]> = fc.array(
  fc.record({
    bytes: fc.integer({ min: 1, max: 12 }),
    stream: fc.constantFrom(0 as const, 1 as const),
    pauses: fc.boolean(),
    // One command ends, and the next of the job begins.
    ends: fc.nat({ max: 9 }).map((one) => one === 0),
  }),
  { minLength: 1, maxLength: 80 },
);
const scene = fc.array(secret, { minLength: 1, maxLength: 4 }).chain((secrets) =>
  fc.record({
    secrets: fc.constant(secrets),
    text: fc
      .array(fc.oneof(noise, fc.constantFrom(...secrets.flatMap(formsOf))), { maxLength: 8 })
      .map((parts) => Buffer.concat(parts)),
    turns,
  }),
);

/** What leaves, in order, before and after the text of both streams is masked. */
function leaving({ secrets, text, turns }: { secrets: Buffer[]; text: Buffer; turns: Turn[] }) {
  const { matcher } = new Scrubber(secrets);
  const current = () => matcher;
  const joined = new JoinedMask(current);
  let streams = [new ScrubStream(current), new ScrubStream(current)] as const;
  const before: Buffer[] = [];
  const after: Buffer[] = [];
  const leave = (stream: ScrubStream, bytes: Buffer) => {
    const copy = Buffer.from(bytes);
    before.push(Buffer.from(copy));
    joined.mask(stream, copy);
    after.push(copy);
  };
  const end = () => {
    for (const stream of streams) leave(stream, stream.end());
    streams = [new ScrubStream(current), new ScrubStream(current)];
  };
  let at = 0;
  for (const { bytes, stream, pauses, ends } of turns) {
    const piece = Buffer.from(text.subarray(at, at + bytes));
    at += bytes;
    for (const one of streams[stream].push(piece)) leave(streams[stream], one);
    if (pauses) for (const one of streams) leave(one, one.release());
    if (ends) end();
  }
  end();
  return { before: Buffer.concat(before), after: Buffer.concat(after) };
}

test("a value is in no text of both streams, however it is cut over them, over pauses and over commands", () => {
  let crossing = 0;
  fc.assert(
    fc.property(scene, ({ secrets, text, turns }) => {
      const forms = secrets.flatMap(formsOf);
      const { before, after } = leaving({ secrets, text, turns });
      for (const form of forms) {
        if (before.includes(form)) crossing++;
        expect(after.includes(form)).toBe(false);
      }
      // Only bytes of such a value, or of eight or more of its beginning, are changed.
      const may = new Uint8Array(before.length);
      for (const form of forms)
        for (let at = 0; at < before.length; at++) {
          let same = 0;
          while (same < form.length && form[same] === before[at + same]) same++;
          if (same >= 8) may.fill(1, at, at + same);
        }
      for (let at = 0; at < before.length; at++)
        if (after[at] !== before[at]) expect([after[at], may[at]]).toEqual([0x2a, 1]);
    }),
    { seed, numRuns: 3_000 },
  );
  // Otherwise the property would hold without a mask.
  expect(crossing).toBeGreaterThan(50);
});

test("a value that becomes known in the middle of a text is masked where the streams change", () => {
  const value = Buffer.from("0123456789abcdef");
  let matcher = new Scrubber([Buffer.from("some-other-value")]).matcher;
  const joined = new JoinedMask(() => matcher);
  joined.mask("stdout", Buffer.from("x 01234567"));
  matcher = new Scrubber([value]).matcher;
  const rest = Buffer.from("89abcdef y");
  expect(joined.mask("stderr", rest)).toBe(1);
  expect(rest.toString()).toBe("******** y");
});

test("a value that comes byte by byte behind a change of stream shows seven of its bytes at most", () => {
  const value = Buffer.from("0123456789abcdef");
  const { matcher } = new Scrubber([value]);
  for (let cut = 1; cut < value.length; cut++) {
    const joined = new JoinedMask(() => matcher);
    const first = Buffer.from(value.subarray(0, cut));
    joined.mask("stdout", first);
    const rest = Array.from(value.subarray(cut), (byte) => Buffer.from([byte]));
    for (const byte of rest) joined.mask("stderr", byte);
    const text = Buffer.concat(rest).toString();
    expect(text, `cut at ${cut}`).toMatch(/^[^*]{0,6}\*+$/);
    expect(text.replaceAll("*", "").length + cut).toBeLessThanOrEqual(Math.max(cut, 7));
  }
});
