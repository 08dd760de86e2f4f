import { describe, expect, test } from "vitest";
import { compileGlob, GlobError } from "../src/exec/glob-match.ts";

const matches = (pattern: string, path: string, options: { dot?: boolean; directory?: boolean } = {}) =>
  compileGlob(pattern, options.dot ?? false).matches(path, options.directory ?? false);

describe("a glob", () => {
  test.each([
    ["*.ts", "a.ts", true],
    ["*.ts", "src/a.ts", false],
    ["**/*.ts", "a.ts", true],
    ["**/*.ts", "a/b/c.ts", true],
    ["src/**", "src", false],
    ["src/**", "src/a/b", true],
    ["src/**/x", "src/x", true],
    ["a?c", "abc", true],
    ["a?c", "aéc", true],
    ["[a-c]x", "bx", true],
    ["[!a-c]x", "bx", false],
    ["[]]x", "]x", true],
    ["[\\]]x", "]x", true],
    ["[a", "[a", true],
    ["{a,b{c,d}}.md", "bd.md", true],
    ["{a}", "{a}", true],
    ["\\*", "*", true],
    ["\\*", "a", false],
    ["*", ".hidden", false],
    [".*", ".hidden", true],
    ["**/x", ".git/x", false],
    ["./a//b", "a/b", true],
    ["a\\", "a\\", true],
  ])("%s on %s is %s", (pattern, path, expected) => {
    expect(matches(pattern, path)).toBe(expected);
  });

  test("with a slash at its end matches directories only", () => {
    expect(matches("d/", "d")).toBe(false);
    expect(matches("d/", "d", { directory: true })).toBe(true);
  });

  test("matches hidden names when told to", () => {
    expect(matches("**/x", ".git/x", { dot: true })).toBe(true);
  });

  test.each(["", "/a", "a/../b", "{a,b}".repeat(12), "a/".repeat(70), "x".repeat(5000)])(
    "is refused: %j",
    (pattern) => {
      expect(() => compileGlob(pattern, false)).toThrow(GlobError);
    },
  );

  test("made to be slow is not", () => {
    const before = process.cpuUsage();
    expect(matches(`${"*a".repeat(100)}b`, "a".repeat(255))).toBe(false);
    expect(matches(`${"**/".repeat(60)}b`, `${"a/".repeat(1000)}c`)).toBe(false);
    // Milliseconds; a matcher that goes back and forth takes longer than anybody waits.
    expect(process.cpuUsage(before).user).toBeLessThan(1_000_000);
  });
});
