import { isDeepStrictEqual } from "node:util";
import {
  encodeFrame,
  type Frame,
  FrameDecoder,
  FrameError,
  FrameType,
  HelloAckTag,
  headerBytes,
  maxFrameBytes,
  Records,
  RecordWriter,
  readItems,
  trailerBytes,
} from "@berth/init";
import fc from "fast-check";
import { expect, test } from "vitest";
import { StdioDemux } from "../../packages/sandbox/src/docker/stdio-demux.ts";

const nonce = Buffer.from("0123456789abcdef");
const hello = encodeFrame(
  FrameType.helloAck,
  0,
  1,
  new RecordWriter().add(HelloAckTag.nonce, nonce).finish(),
);

const bytes = (maxLength: number) =>
  fc.uint8Array({ maxLength, size: "max" }).map((array) => Buffer.from(array));
const frame: fc.Arbitrary<Frame> = fc.record({
  type: fc.oneof(fc.nat(255), fc.constantFrom(FrameType.stdout, FrameType.stderr, FrameType.data)),
  channel: fc.oneof(fc.nat(0xffffffff), fc.nat(1)),
  epoch: fc.oneof(fc.maxSafeNat(), fc.nat(1)),
  payload: bytes(2_000),
});
const cuts = fc.array(fc.integer({ min: 1, max: 3_000 }), { minLength: 1, maxLength: 50 });

function encoded({ type, channel, epoch, payload }: Frame): Buffer {
  return encodeFrame(type, channel, epoch, payload);
}

const streamed: readonly number[] = [FrameType.stdout, FrameType.stderr, FrameType.data];
const head = ({ type, channel, epoch }: Frame) => ({ type, channel, epoch });

/** Bytes of output count, not the frames they come in: neighbours of one channel are put together. */
function joined(frames: readonly Frame[]): Frame[] {
  const all: Frame[] = [];
  for (const one of frames) {
    const last = all.at(-1);
    const same = last && streamed.includes(one.type) && isDeepStrictEqual(head(last), head(one));
    if (same) all[all.length - 1] = { ...one, payload: Buffer.concat([last.payload, one.payload]) };
    else all.push(one);
  }
  return all;
}

/** The stream in pieces of the given lengths, over and over. */
function* pieces(stream: Buffer, lengths: readonly number[]): Generator<Buffer> {
  for (let at = 0, turn = 0; at < stream.length; turn++) {
    const length = lengths[turn % lengths.length] ?? 1;
    yield stream.subarray(at, at + length);
    at += length;
  }
}

interface Decoded {
  readonly frames: Frame[];
  readonly error: unknown;
  readonly mostHeld: number;
}

function decode(stream: Buffer, lengths: readonly number[], decoder = new FrameDecoder(nonce)): Decoded {
  const frames: Frame[] = [];
  let mostHeld = 0;
  try {
    for (const piece of pieces(stream, lengths)) {
      // A piece of a socket's buffer is overwritten after the call; what is kept must be a copy.
      decoder.push(Buffer.from(piece), ({ payload, ...rest }) =>
        frames.push({ ...rest, payload: Buffer.from(payload) }),
      );
      mostHeld = Math.max(mostHeld, decoder.heldBytes);
    }
    return { frames, error: undefined, mostHeld };
  } catch (error) {
    return { frames, error, mostHeld };
  }
}

test("frames decode to what was encoded, with any cuts in the stream and any bytes before the hello", () => {
  fc.assert(
    fc.property(bytes(500), fc.array(frame, { maxLength: 12 }), cuts, (garbage, frames, lengths) => {
      const { frames: out, error } = decode(Buffer.concat([garbage, hello, ...frames.map(encoded)]), lengths);
      expect(error).toBeUndefined();
      expect(joined(out.slice(1))).toEqual(joined(frames));
    }),
    { numRuns: 300 },
  );
});

test("arbitrary bytes before the hello are thrown away, and hold no more than a hello's beginning", () => {
  fc.assert(
    fc.property(bytes(5_000), cuts, (garbage, lengths) => {
      const { frames, error, mostHeld } = decode(garbage, lengths);
      expect({ frames, error }).toEqual({ frames: [], error: undefined });
      expect(mostHeld).toBeLessThan(64);
    }),
    { numRuns: 300 },
  );
});

test("arbitrary bytes after the hello end in a FrameError or in less than one held frame", () => {
  // Half of them begin like a frame: pure noise would never get past the magic number.
  const likely = fc.oneof(
    bytes(5_000),
    fc.tuple(fc.nat(255), fc.nat(0xffffffff), bytes(5_000)).map(([type, length, rest]) => {
      const header = encodeFrame(type, 1, 1, Buffer.alloc(0)).subarray(0, headerBytes);
      header.writeUInt32BE(length, 16);
      return Buffer.concat([header, rest]);
    }),
  );
  fc.assert(
    fc.property(likely, cuts, (noise, lengths) => {
      const { error, mostHeld } = decode(Buffer.concat([hello, noise]), lengths);
      if (error !== undefined) expect(error).toBeInstanceOf(FrameError);
      expect(mostHeld).toBeLessThan(maxFrameBytes);
    }),
    { numRuns: 500 },
  );
});

test("a changed byte in a header's magic, version or length, or in a trailer, lets no frame after it through", () => {
  const fields = [0, 1, 2, 16, 17, 18, 19, -1, -2, -3, -4];
  fc.assert(
    fc.property(
      fc.array(frame, { minLength: 1, maxLength: 8 }),
      fc.nat(),
      fc.constantFrom(...fields),
      fc.integer({ min: 1, max: 255 }),
      cuts,
      (frames, pick, field, change, lengths) => {
        const at = pick % frames.length;
        const parts = frames.map(encoded);
        const victim = parts[at] ?? Buffer.alloc(0);
        const index = field < 0 ? victim.length + field : field;
        victim.writeUInt8(victim.readUInt8(index) ^ change, index);
        const { frames: out, error, mostHeld } = decode(Buffer.concat([hello, ...parts]), lengths);
        const before = frames.slice(0, at);
        const after = out.slice(1);
        if (streamed.includes(frames[at]?.type ?? 0)) {
          // Its own bytes may have passed before its end was seen: all that can be wrong is one channel's output.
          while (
            after.length > 0 &&
            isDeepStrictEqual(head(after.at(-1) as Frame), head(frames[at] as Frame))
          )
            after.pop();
          while (
            before.length > 0 &&
            isDeepStrictEqual(head(before.at(-1) as Frame), head(frames[at] as Frame))
          )
            before.pop();
        }
        expect(joined(after)).toEqual(joined(before));
        // A longer length may only make it wait for the rest of a frame.
        const waits = field >= 16 && (mostHeld > 0 || streamed.includes(frames[at]?.type ?? 0));
        expect(error instanceof FrameError || waits).toBe(true);
      },
    ),
    { numRuns: 500 },
  );
});

test("a payload over the limit is refused from its header alone", () => {
  fc.assert(
    fc.property(fc.integer({ min: 65_537, max: 0xffffffff }), cuts, (length, lengths) => {
      const header = encodeFrame(FrameType.stdout, 1, 1, Buffer.alloc(0)).subarray(0, headerBytes);
      header.writeUInt32BE(length, 16);
      const { error, frames, mostHeld } = decode(Buffer.concat([hello, header]), lengths);
      expect(error).toBeInstanceOf(FrameError);
      expect(frames).toHaveLength(1);
      expect(mostHeld).toBeLessThanOrEqual(hello.length + headerBytes);
    }),
  );
});

test("records decode to what was encoded", () => {
  const value = fc.oneof(fc.maxSafeNat(), bytes(300), fc.string());
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.tuple(fc.nat(255), value), { selector: ([tag]) => tag, maxLength: 20 }),
      (all) => {
        const writer = new RecordWriter();
        for (const [tag, one] of all) writer.add(tag, one);
        const records = new Records(writer.finish());
        for (const [tag, one] of all) {
          if (typeof one === "number") expect(records.number(tag)).toBe(one);
          else if (typeof one === "string") expect(records.bytes(tag)?.equals(Buffer.from(one))).toBe(true);
          else expect(records.bytes(tag)?.equals(one)).toBe(true);
        }
      },
    ),
  );
});

test("arbitrary bytes as records or items give exactly their content, or a FrameError", () => {
  // Small lengths, so that some records fit.
  const payload = fc.array(fc.tuple(fc.nat(20), fc.nat(12), bytes(12)), { maxLength: 20 }).map((all) =>
    Buffer.concat(
      all.map(([tag, length, value]) => {
        const head = Buffer.alloc(5);
        head.writeUInt8(tag, 0);
        head.writeUInt32BE(length, 1);
        return Buffer.concat([head, value]);
      }),
    ),
  );
  fc.assert(
    fc.property(fc.oneof(payload, bytes(400)), (raw) => {
      const expected = referenceRecords(raw);
      if (expected === undefined) {
        expect(() => new Records(raw)).toThrow(FrameError);
      } else {
        const records = new Records(raw);
        for (let tag = 0; tag < 256; tag++) {
          const values = expected.filter((one) => one.tag === tag).map(({ value }) => value);
          expect(records.all(tag)).toEqual(values);
          const exact = values[0]?.length === 8 && values[0].readBigUInt64BE() <= Number.MAX_SAFE_INTEGER;
          if (values[0] === undefined || exact) expect(records.number(tag) ?? 0).toBeGreaterThanOrEqual(0);
          else expect(() => records.number(tag)).toThrow(FrameError);
        }
      }
      const item = Buffer.alloc(4);
      item.writeUInt32BE(raw.length);
      const items = () => [...readItems(Buffer.concat([item, raw]))];
      if (expected === undefined) expect(items).toThrow(FrameError);
      else expect(items()).toHaveLength(1);
      item.writeUInt32BE(raw.length + 1);
      expect(items).toThrow(FrameError);
    }),
    { numRuns: 300 },
  );
});

/** The same as `Records` in the plainest way; undefined when the payload does not add up. */
function referenceRecords(raw: Buffer): { tag: number; value: Buffer }[] | undefined {
  if (raw.length === 0) return [];
  if (raw.length < 5) return undefined;
  const end = 5 + raw.readUInt32BE(1);
  if (end > raw.length) return undefined;
  const rest = referenceRecords(raw.subarray(end));
  return rest && [{ tag: raw.readUInt8(0), value: raw.subarray(5, end) }, ...rest];
}

test("the engine's multiplexed output decodes the same with any cuts, and noise in it is a FrameError", () => {
  const chunk = fc.tuple(fc.constantFrom(1, 2), bytes(300));
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 10 }), bytes(50), cuts, (chunks, noise, lengths) => {
      const framed = chunks.map(([stream, payload]) => {
        const head = Buffer.alloc(8);
        head.writeUInt8(stream, 0);
        head.writeUInt32BE(payload.length, 4);
        return Buffer.concat([head, payload]);
      });
      const got: Record<"stdout" | "stderr", Buffer[]> = { stdout: [], stderr: [] };
      const demux = new StdioDemux((stream, part) => got[stream].push(Buffer.from(part)));
      for (const piece of pieces(Buffer.concat(framed), lengths)) demux.push(piece);
      const of = (stream: number) =>
        Buffer.concat(chunks.filter(([one]) => one === stream).map(([, part]) => part));
      expect(Buffer.concat(got.stdout).equals(of(1))).toBe(true);
      expect(Buffer.concat(got.stderr).equals(of(2))).toBe(true);
      try {
        for (const piece of pieces(Buffer.concat([Buffer.of(3), noise]), lengths)) demux.push(piece);
        expect(noise.length).toBeLessThan(7);
      } catch (error) {
        expect(error).toBeInstanceOf(FrameError);
      }
    }),
    { numRuns: 300 },
  );
});

test("a stream that comes byte by byte costs no copies beyond its own size", () => {
  const one = encodeFrame(FrameType.items, 1, 1, Buffer.alloc(60_000, 1));
  const decoder = new FrameDecoder(nonce);
  decoder.push(Buffer.from(hello), () => {});
  let frames = 0;
  const before = process.cpuUsage();
  for (let round = 0; round < 20; round++) {
    for (let at = 0; at < one.length; at++) decoder.push(one.subarray(at, at + 1), () => frames++);
  }
  expect(frames).toBe(20);
  expect(one.length).toBe(headerBytes + 60_000 + trailerBytes);
  // 1.2 million pushes; copying what is held at each would move 36 GB.
  expect(process.cpuUsage(before).user / 1_000_000).toBeLessThan(4);
});
