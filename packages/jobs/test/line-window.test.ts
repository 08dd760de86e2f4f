import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LineWindow } from "../src/text/line-window.ts";

const content = fc
  .array(fc.constantFrom("a", "é", "\n", "\r\n", "longer words", ""), { maxLength: 40 })
  .map((parts) => Buffer.from(parts.join("")));

/** By the book: all lines with their ends, then the ones asked for. */
function expected(bytes: Buffer, first: number, count: number) {
  const lines = bytes.toString().match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const wanted = lines.slice(first - 1, first - 1 + count);
  return { text: wanted.join(""), last: first + wanted.length - 1, more: first - 1 + count < lines.length };
}

function inPieces(bytes: Buffer, sizes: readonly number[], window: LineWindow): string {
  let at = 0;
  for (const size of [...sizes, bytes.length]) {
    window.add(bytes.subarray(at, at + size));
    at = Math.min(bytes.length, at + size);
  }
  return window.finish({ atEnd: true }).toString();
}

describe("lines of a file", () => {
  test("the lines of a file do not depend on how its bytes are cut into pieces", () => {
    fc.assert(
      fc.property(
        content,
        fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 10 }),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 12 }),
        (bytes, sizes, first, count) => {
          const window = new LineWindow(first, count, 1_000_000);
          const text = inPieces(bytes, sizes, window);
          expect({ text, last: window.last, more: window.more }).toEqual(expected(bytes, first, count));
        },
      ),
    );
  });

  test("the lines of a file are kept whole, and never more bytes of them than allowed", () => {
    fc.assert(
      fc.property(content, fc.integer({ min: 1, max: 40 }), (bytes, maxBytes) => {
        const window = new LineWindow(1, 1_000, maxBytes);
        const text = inPieces(bytes, [7, 7, 7], window);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxBytes);
        expect(bytes.toString().startsWith(text)).toBe(true);
        expect(text === bytes.toString() || text === "" || text.endsWith("\n")).toBe(true);
        expect(window.more).toBe(text !== bytes.toString());
      }),
    );
  });

  test("the lines of a file that are too long alone are named", () => {
    const window = new LineWindow(2, 5, 10);
    inPieces(Buffer.from("short\nmuch longer than ten\n"), [], window);
    expect(window.tooLongLine).toBe(2);
  });
});
