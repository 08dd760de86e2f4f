import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Refusal } from "../src/run-context.ts";
import { applyHunks } from "../src/text/apply-hunks.ts";
import { parseDiff } from "../src/text/unified-diff.ts";

let directory = "";
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "berth-patch-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function diffOf(before: string, after: string, context = 3): string {
  writeFileSync(join(directory, "before"), before);
  writeFileSync(join(directory, "after"), after);
  const made = spawnSync("diff", [`-U${context}`, "before", "after"], { cwd: directory, encoding: "utf8" });
  if (made.error) throw made.error;
  return made.stdout;
}

/** The file after the diff's only section, or what is wrong with it. */
function patched(content: string, diff: string): string | readonly string[] {
  const [only] = parseDiff(diff);
  const result = applyHunks(Buffer.from(content).toString("latin1"), only?.hunks ?? []);
  return result.kind === "failed" ? result.problems : Buffer.from(result.content, "latin1").toString();
}

const file = fc
  .tuple(
    fc.array(fc.constantFrom("a", "b", "c", "{", "}", "", "é", "- x", "-- x", "+y"), { maxLength: 30 }),
    fc.boolean(),
  )
  .map(([lines, ended]) => lines.join("\n") + (ended && lines.length > 0 ? "\n" : ""));

const hunk = (...lines: string[]) => ["--- a/f", "+++ b/f", ...lines, ""].join("\n");

describe("a diff made by diff(1)", () => {
  test("a diff made by diff(1) turns the old file into the new one with any amount of context", () => {
    fc.assert(
      fc.property(file, file, fc.integer({ min: 0, max: 3 }), (before, after, context) => {
        fc.pre(before !== after);
        expect(patched(before, diffOf(before, after, context))).toBe(after);
      }),
      { numRuns: 60 },
    );
  });

  test("a diff made by diff(1) still applies after lines were added above", () => {
    fc.assert(
      fc.property(file, file, fc.integer({ min: 1, max: 50 }), (before, after, added) => {
        fc.pre(before !== after && before !== "");
        const above = Array.from({ length: added }, (_, index) => `above ${index}\n`).join("");
        const result = patched(above + before, diffOf(before, after, 30));
        expect(result).toBe(above + after);
      }),
      { numRuns: 40 },
    );
  });
});

describe("patch", () => {
  test("a patch goes to the nearest place that matches exactly", () => {
    const content = "x\nsame\ny\nx\nsame\ny\nx\nsame\ny\n";
    expect(patched(content, hunk("@@ -5,1 +5,1 @@", "-same", "+changed"))).toBe(
      "x\nsame\ny\nx\nchanged\ny\nx\nsame\ny\n",
    );
  });

  test("a patch is refused, hunk by hunk, where its old lines are not", () => {
    expect(
      patched("one\ntwo\n", hunk("@@ -1,1 +1,1 @@", "-uno", "+1", "@@ -2,1 +2,1 @@", "-dos", "+2")),
    ).toEqual([
      'hunk 1 (@@ -1,1 +1,1 @@) does not match anywhere: line 1 is "one", where the patch has "uno"',
      'hunk 2 (@@ -2,1 +2,1 @@) does not match anywhere: line 2 is "two", where the patch has "dos"',
    ]);
  });

  test("a patch does not take a line that differs in a space", () => {
    expect(patched("a b\n", hunk("@@ -1,1 +1,1 @@", "-a  b", "+c"))).toHaveLength(1);
  });

  test("a patch keeps CRLF, whether the diff has it or not", () => {
    const lf = hunk("@@ -1,2 +1,3 @@", " one", "+new", " two");
    expect(patched("one\r\ntwo\r\n", lf)).toBe("one\r\nnew\r\ntwo\r\n");
    expect(patched("one\r\ntwo\r\n", lf.replaceAll("\n", "\r\n"))).toBe("one\r\nnew\r\ntwo\r\n");
    expect(patched("one\ntwo\n", lf.replaceAll("\n", "\r\n"))).toBe("one\nnew\ntwo\n");
    expect(patched("one\r\n", hunk("@@ -1,1 +1,1 @@", "-one\r", "+one"))).toBe("one\n");
  });

  test("a patch takes away and gives the last newline", () => {
    const none = "\\ No newline at end of file";
    expect(patched("a", hunk("@@ -1 +1 @@", "-a", none, "+a"))).toBe("a\n");
    expect(patched("a\n", hunk("@@ -1 +1 @@", "-a", "+a", none))).toBe("a");
    expect(patched("a", hunk("@@ -1 +1 @@", "-a", "+b"))).toEqual([
      expect.stringContaining("without a newline"),
    ]);
    expect(patched("a", hunk("@@ -1,0 +2 @@", "+b"))).toEqual([expect.stringContaining("no newline")]);
  });

  test("a patch takes an empty context line whose space an editor stripped", () => {
    expect(patched("a\n\nb\n", hunk("@@ -1,3 +1,3 @@", " a", "", "-b", "+c"))).toBe("a\n\nc\n");
  });

  test("a patch that would search for too long is refused", () => {
    const content = "x\n".repeat(200_000);
    const long = Array.from({ length: 50_000 }, () => " x");
    expect(() => patched(content, hunk("@@ -1,50001 +1,50002 @@", ...long, " end", "+new"))).toThrow(
      /too long/,
    );
  });

  test("a patch with a line number far beyond the file still finds its place", () => {
    expect(patched("a\nb\n", hunk("@@ -999999999,1 +1,1 @@", "-b", "+c"))).toBe("a\nc\n");
  });
});

describe("files of a diff", () => {
  const paths = (diff: string) =>
    parseDiff(diff).map(({ oldPath, newPath, mode }) => [oldPath, newPath, mode] as const);

  test("the files of a diff lose git's prefixes and times, and keep directories called a and b", () => {
    expect(paths("--- a/x.c\t2026-01-01\n+++ b/x.c\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n")).toEqual([
      ["x.c", "x.c", undefined],
    ]);
    expect(paths("--- a/x.c\n+++ a/x.c\n@@ -1 +1 @@\n-a\n+b\n")).toEqual([["a/x.c", "a/x.c", undefined]]);
    expect(paths("--- x.c.orig\n+++ x.c\n@@ -1 +1 @@\n-a\n+b\n")).toEqual([["x.c", "x.c", undefined]]);
  });

  test("the files of a diff are created, deleted, renamed and made executable", () => {
    const diff = [
      "diff --git a/empty b/empty",
      "new file mode 100644",
      "index 0000000..e69de29",
      "diff --git a/run.sh b/run.sh",
      "new file mode 100755",
      "--- /dev/null",
      "+++ b/run.sh",
      "@@ -0,0 +1 @@",
      "+echo",
      "diff --git a/old b/old",
      "deleted file mode 100644",
      "--- a/old",
      "+++ /dev/null",
      "@@ -1 +0,0 @@",
      "-x",
      "diff --git a/from b/to",
      "similarity index 100%",
      "rename from from",
      "rename to to",
      "diff --git a/tool b/tool",
      "old mode 100644",
      "new mode 100755",
      "",
    ].join("\n");
    expect(paths(diff)).toEqual([
      [undefined, "empty", 0o644],
      [undefined, "run.sh", 0o755],
      ["old", undefined, undefined],
      ["from", "to", undefined],
      ["tool", "tool", 0o755],
    ]);
  });

  test("the files of a diff may have quoted names", () => {
    expect(
      paths('--- "a/caf\\303\\251 \\"x\\".txt"\n+++ "b/caf\\303\\251 \\"x\\".txt"\n@@ -1 +1 @@\n-a\n+b\n'),
    ).toEqual([['café "x".txt', 'café "x".txt', undefined]]);
  });

  test("the files of a diff are found in a mail, after its text and before its signature", () => {
    const mail = `From: a\n\nsome - text\n---\n f | 2 +-\n\n${hunk("@@ -1 +1 @@", "-a", "+b")}-- \n2.39\n\n`;
    expect(paths(mail)).toEqual([["f", "f", undefined]]);
  });

  test.each([
    ["nothing in it", "hello\n", /changes no file/],
    ["a hunk too short", hunk("@@ -1,2 +1,2 @@", "-a", "+b"), /fewer lines than its header/],
    [
      "a hunk too long",
      hunk("@@ -1 +1 @@", "-a", "+b", "+c"),
      /line 6 of the diff: .* more lines than its header/,
    ],
    ["a header that is none", hunk("@@ here @@", "-a"), /not a hunk header/],
    ["a hunk of no file", "@@ -1 +1 @@\n-a\n+b\n", /before any ---/],
    ["a binary change", "diff --git a/x b/x\nBinary files a/x and b/x differ\n", /binary/],
    ["a symlink", "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n", /only regular files/],
  ])("a diff is refused with %s", (_, diff, message) => {
    expect(() => parseDiff(diff)).toThrow(message);
  });

  test("the files of a diff never make the parser fail in another way", () => {
    const line = fc.constantFrom(
      "--- a/x",
      "+++ b/x",
      "@@ -1 +1 @@",
      "@@ -1,2 +1,2 @@",
      "-a",
      "+b",
      " c",
      "",
      "\\",
      "diff --git a/x b/x",
      "x",
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 15 }), (lines) => {
        let thrown: unknown;
        try {
          parseDiff(lines.join("\n"));
        } catch (error) {
          thrown = error;
        }
        expect(thrown instanceof Refusal ? thrown.code : thrown).toBeOneOf([undefined, "bad-patch"]);
      }),
    );
  });
});
