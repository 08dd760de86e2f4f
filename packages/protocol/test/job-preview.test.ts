import { expect, test } from "vitest";
import { type JobRequestInput, jobPreview, jobRequest, shortPreview } from "../src/index.ts";

const preview = (request: JobRequestInput, more: object = {}, mask?: (text: string) => string) =>
  jobPreview({ request: jobRequest.parse(request), ...more }, mask ? { mask } : {});

test("a preview has everything that decides what runs: environment, directory, input, limits, arguments and contents", () => {
  const exec = preview(
    {
      kind: "exec",
      command: "make deploy",
      cwd: "src",
      env: { LD: "x" },
      stdin: "yes",
      limits: { timeoutMs: 5 },
    },
    { agent: "ci", profile: "net", settings: { leaks: "block" } },
  );
  expect(exec.split("\n")).toEqual(
    expect.arrayContaining([
      "command: make deploy",
      'cwd: "src"',
      'env: {"LD":"x"}',
      'stdin: "yes"',
      'limits: {"timeoutMs":5}',
      'agent: "ci"',
      'profile: "net"',
      'settings: {"leaks":"block"}',
    ]),
  );
  expect(preview({ kind: "code", language: "sh", source: "$1", args: ["rm"] })).toContain('args: ["rm"]');
  expect(preview({ kind: "write", path: "a", content: "evil" })).toContain('content: "evil"');
  expect(preview({ kind: "edit", path: "a", find: "b", replace: "evil" })).toContain('replace: "evil"');
  expect(preview({ kind: "patch", diff: "+evil" })).toContain("+evil");
  const steps = [{ kind: "exec", command: "ls", stdin: "evil" } as const];
  expect(preview({ kind: "steps", steps })).toContain("evil");
});

test("no part of a command passes for another field of the preview, or hides what is beside it", () => {
  const shown = preview({
    kind: "exec",
    command: 'ls\nenv: {"A":"harmless"}\u2028x\u202eb\x1b[2K',
    env: { A: "evil" },
  });
  expect(shown.split("\n").filter((line) => line.startsWith("env:"))).toEqual(['env: {"A":"evil"}']);
  expect(shown).toContain("\\u{202e}");
  expect(shown).toContain("\\u{1b}");
});

test("a preview masks secrets wherever they are, and says how much it leaves out", () => {
  const mask = (text: string) => text.replaceAll("hunter22", "*".repeat(8));
  const request = {
    kind: "exec",
    command: "x hunter22",
    env: { A: 'a"hunter22' },
    stdin: "hunter22",
  } as const;
  const shown = preview(request, { secrets: { TOKEN: "sealed" } }, mask);
  expect(shown).not.toContain("hunter22");
  expect(shown).toContain("secrets: TOKEN");
  expect(shown).not.toContain("sealed");
  expect(shortPreview("x".repeat(2_500))).toBe(`${"x".repeat(2_000)}… (500 more characters are not shown)`);
  expect(preview({ kind: "write", path: "a", content: "x".repeat(300_000) })).toMatch(
    / more characters are not shown\)$/,
  );
});
