import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { edited } from "../src/kinds/edit.ts";

const edit = (content: string | Buffer, find: string, replace: string, all = false) =>
  edited(Buffer.from(content), { path: "f", find, replace, all });

describe("edit", () => {
  test("an edit replaces the one match", () => {
    expect(edit("one two three", "two", "2")).toEqual({ content: Buffer.from("one 2 three"), count: 1 });
  });

  test("an edit of every match is what replaceAll does", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "é", "\n"), maxLength: 30 });
    fc.assert(
      fc.property(
        text,
        text.filter((find) => find !== ""),
        text,
        (content, find, replace) => {
          fc.pre(content.includes(find));
          expect(edit(content, find, replace, true).content.toString()).toBe(
            content.replaceAll(find, () => replace),
          );
        },
      ),
    );
  });

  test("an edit leaves bytes that are no text as they are", () => {
    const content = Buffer.from([0xff, 0x00, 0x61, 0xfe]);
    expect([...edit(content, "a", "b").content]).toEqual([0xff, 0x00, 0x62, 0xfe]);
  });

  test("the refusal of an edit with several matches names how many and at which lines", () => {
    expect(() => edit("x\ny\nx\nx x\n", "x", "z")).toThrow(/4 times in f \(at lines 1, 3, 4, 4\)/);
  });

  test("an edit without a match is refused, with the nearest lines", () => {
    expect(() => edit("a\n", "b", "c")).toThrow(/is not in f; read the file/);
    expect(() => edit("a\r\nb\r\n", "a\nb\n", "c")).toThrow(/end in CRLF/);
    expect(() => edit("a\nb\n", "a\r\nb\r\n", "c")).toThrow(/end in LF/);
    expect(() => edit("x\nif a:\n  b\n", "if a:\n    b\n", "c")).toThrow(/first line is at line 2/);
  });

  test("an edit does not grow a file without bound", () => {
    expect(() => edit("a".repeat(1_000), "a", "b".repeat(100_000), true)).toThrow(
      /would have 100000000 bytes/,
    );
    expect(() => edit("a".repeat(200_000), "a", "b", true)).toThrow(/more than 100000 times/);
  });
});
