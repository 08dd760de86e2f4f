import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HeadTailBuffer } from "../src/output/head-tail-buffer.ts";

const chunk = fc.record({
  stream: fc.constantFrom("stdout" as const, "stderr" as const),
  bytes: fc.uint8Array({ minLength: 1, maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
});

describe("kept output", () => {
  test("output under the limit is kept whole and in order", () => {
    const buffer = new HeadTailBuffer(1024);
    buffer.add("stdout", Buffer.from("a"));
    buffer.add("stderr", Buffer.from("b"));
    buffer.add("stderr", Buffer.from("c"));
    buffer.add("stdout", Buffer.from("d"));
    const kept = buffer.finish();
    expect(
      [...kept.head, ...kept.tail].map(({ stream, bytes }) => `${stream}:${Buffer.from(bytes)}`),
    ).toEqual(["stdout:a", "stderr:bc", "stdout:d"]);
    expect(kept.cutBytes).toBe(0);
  });

  test("kept output is a prefix and a suffix of all output, and counts the rest, for any chunks", () => {
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 200 }), fc.integer({ min: 2, max: 2000 }), (chunks, limit) => {
        const buffer = new HeadTailBuffer(limit);
        for (const { stream, bytes } of chunks) buffer.add(stream, bytes);
        const kept = buffer.finish();
        const all = Buffer.concat(chunks.map(({ bytes }) => bytes));
        const head = Buffer.concat(kept.head.map(({ bytes }) => bytes));
        const tail = Buffer.concat(kept.tail.map(({ bytes }) => bytes));
        expect(all.subarray(0, head.length)).toEqual(head);
        expect(all.subarray(all.length - tail.length)).toEqual(tail);
        expect(head.length + tail.length + kept.cutBytes).toBe(all.length);
        expect(head.length + tail.length).toBeLessThanOrEqual(limit);
        expect(kept.totalBytes).toBe(all.length);
      }),
    );
  });

  test("kept output that keeps only the start is a prefix of all output, and counts the rest, for any chunks", () => {
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 200 }), fc.integer({ min: 2, max: 2000 }), (chunks, limit) => {
        const keeper = new HeadTailBuffer(limit, "start");
        for (const { stream, bytes } of chunks) keeper.add(stream, bytes);
        const kept = keeper.finish();
        const all = Buffer.concat(chunks.map(({ bytes }) => bytes));
        const head = Buffer.concat(kept.head.map(({ bytes }) => bytes));
        expect(kept).toMatchObject({ tail: [], shows: "start", totalBytes: all.length });
        expect(all.subarray(0, head.length)).toEqual(head);
        expect(head.length + kept.cutBytes).toBe(all.length);
        expect(head.length).toBeLessThanOrEqual(limit);
        if (chunks.every(({ stream }) => stream === "stdout"))
          expect(head.length).toBe(Math.min(limit, all.length));
      }),
    );
  });

  test("kept output does not grow with single bytes that alternate between the streams", () => {
    const buffer = new HeadTailBuffer(1024 * 1024);
    for (let index = 0; index < 300_000; index++)
      buffer.add(index % 2 ? "stdout" : "stderr", Buffer.from("x"));
    const kept = buffer.finish();
    expect(kept.head.length + kept.tail.length).toBeLessThan(20_000);
    expect(kept.totalBytes).toBe(300_000);
  });

  test("kept output does not hold on to the large buffer that a small chunk is a view of", () => {
    const buffer = new HeadTailBuffer(1024 * 1024);
    buffer.add("stdout", Buffer.alloc(65_536).subarray(0, 10));
    expect(buffer.finish().head.map(({ bytes }) => bytes.buffer.byteLength < 65_536)).toEqual([true]);
  });

  test("kept output lets go of the large chunks it cut, while the command still runs", () => {
    const buffer = new HeadTailBuffer(1024 * 1024);
    for (let index = 0; index < 900; index++) {
      buffer.add("stdout", Buffer.allocUnsafeSlow(65_536));
      // The limit, and a chunk of which only a part is kept at the end of the head and at the beginning of the tail.
      expect(buffer.heldBytes).toBeLessThanOrEqual(1024 * 1024 + 2 * 65_536);
    }
    expect(buffer.finish().totalBytes).toBe(900 * 65_536);
  });
});
