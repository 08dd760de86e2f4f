import { accessRule, jobRequest, refusalBy } from "@berth/protocol";
import { expect, test } from "vitest";
import { diffPaths } from "../src/text/diff-paths.ts";

const guarded = [accessRule.parse({ paths: { deny: ["src/secret/**", "a/**"] } })];
const refusal = (diff: string) =>
  refusalBy(guarded, jobRequest.parse({ kind: "patch", diff }), { diffPaths });
const hunk = "@@ -1 +1 @@\n-a\n+b\n";

test.for([
  ["plain names", `--- src/secret/x\n+++ src/secret/x\n${hunk}`],
  ["git's prefixes", `--- a/src/secret/x\n+++ b/src/secret/x\n${hunk}`],
  ["a new name", `--- a/src/x\n+++ b/src/secret/y\n${hunk}`],
  ["quoted names", `--- "a/src/secret/\\303\\244"\n+++ "b/src/secret/\\303\\244"\n${hunk}`],
  ["octal escapes", `--- "a/src/\\163ecret/x"\n+++ "b/src/\\163ecret/x"\n${hunk}`],
  ["only a mode", "diff --git a/src/secret/x b/src/secret/x\nold mode 100644\nnew mode 100755\n"],
  ["an empty new file", "diff --git a/src/secret/x b/src/secret/x\nnew file mode 100644\n"],
  ["a deletion", "diff --git a/src/secret/x b/src/secret/x\ndeleted file mode 100644\n"],
  ["a rename", "diff --git a/src/secret/x b/y\nrename from src/secret/x\nrename to y\n"],
  ["a quoted rename", 'diff --git a/x b/y\nrename from x\nrename to "src/\\163ecret/x"\n'],
  ["a directory that is called a", `--- a/x\n+++ a/x\n${hunk}`],
  ["dots", `--- a/src/./secret/x\n+++ b/src/./secret/x\n${hunk}`],
  ["the workspace's own name", `--- /workspace/src/secret/x\n+++ /workspace/src/secret/x\n${hunk}`],
  ["a second file", `--- a/x\n+++ b/x\n${hunk}--- a/src/secret/x\n+++ b/src/secret/x\n${hunk}`],
  ["lines of DOS", `--- a/src/secret/x\r\n+++ b/src/secret/x\r\n${hunk}`],
])("a rule about paths sees the files of a diff with %s", ([, diff = ""]) => {
  expect(refusal(diff)).toMatch(/is not allowed/);
});

test("a rule about paths lets a diff of other files pass, and one that no job applies", () => {
  expect(refusal(`--- a/src/x\n+++ b/src/x\n${hunk}`)).toBeUndefined();
  expect(refusal("--- src/secret/x\nnothing else\n")).toBeUndefined();
});
