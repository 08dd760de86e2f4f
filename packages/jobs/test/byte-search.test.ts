import fc from "fast-check";
import { expect, test } from "vitest";
import { findBytes } from "../src/text/byte-search.ts";

const few = fc.array(fc.constantFrom(1, 2), { maxLength: 40 }).map((bytes) => Buffer.from(bytes));

test("a search finds what indexOf finds", () => {
  fc.assert(
    fc.property(
      few,
      few.filter(({ length }) => length > 0),
      (content, wanted) => {
        const expected: number[] = [];
        for (let at = content.indexOf(wanted); at >= 0; at = content.indexOf(wanted, at + wanted.length)) {
          expected.push(at);
        }
        expect(findBytes(content, wanted, 1_000)).toEqual(expected);
        expect(findBytes(content, wanted, 2)).toEqual(expected.slice(0, 2));
      },
    ),
    { numRuns: 1_000 },
  );
});

test("a search made to be slow is not", () => {
  const content = Buffer.alloc(2_000_000, "a");
  const half = "a".repeat(50_000);
  const before = process.cpuUsage();
  expect(findBytes(content, Buffer.from(`${half}b${half}`), 1)).toEqual([]);
  // indexOf takes seconds of the same.
  expect(process.cpuUsage(before).user).toBeLessThan(1_000_000);
});
