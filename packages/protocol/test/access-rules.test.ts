import { describe, expect, test } from "vitest";
import { accessRule, approvalMs, jobRequest, refusalBy } from "../src/index.ts";
import { matchesCommand, matchesPath, matchesWildcard } from "../src/wildcard.ts";

const rules = (...texts: object[]) => texts.map((one) => accessRule.parse(one));
const asks = (request: object) => jobRequest.parse(request);
const run = (command: string) => asks({ kind: "exec", command });

describe("rule about kinds", () => {
  test("a rule about kinds refuses what it denies, also where it allows it, and what is not allowed", () => {
    const some = rules({ kinds: { allow: ["re*", "exec"], deny: ["remove"] } });
    expect(refusalBy(some, asks({ kind: "read", path: "a" }))).toBeUndefined();
    expect(refusalBy(some, run("ls"))).toBeUndefined();
    expect(refusalBy(some, asks({ kind: "remove", path: "a" }))).toMatch(/kind remove/);
    expect(refusalBy(some, asks({ kind: "write", path: "a", content: "" }))).toMatch(/kind write/);
  });

  test("a rule about kinds holds for each step of a job, and further rules only tighten", () => {
    const steps = asks({
      kind: "steps",
      steps: [
        { kind: "read", path: "a" },
        { kind: "exec", command: "ls" },
      ],
    });
    expect(refusalBy(rules({ kinds: { deny: ["exec"] } }), steps)).toMatch(/kind exec/);
    expect(
      refusalBy(rules({ kinds: { allow: ["exec"] } }, { kinds: { allow: ["read"] } }), run("ls")),
    ).toMatch(/kind exec/);
  });

  test("a rule about kinds never keeps a sandbox from being removed", () => {
    expect(refusalBy(rules({ kinds: { deny: ["*"] } }), asks({ kind: "destroy" }))).toBeUndefined();
  });
});

describe("a rule about paths", () => {
  const guarded = rules({ paths: { allow: ["src", "notes/*.md"], deny: ["src/secret/**"] } });
  test.for([
    [{ kind: "read", path: "src/a/b.ts" }, true],
    [{ kind: "read", path: "./src/a.ts" }, true],
    [{ kind: "read", path: "/workspace/src/a.ts" }, true],
    [{ kind: "read", path: "src/secret/key" }, false],
    [{ kind: "read", path: "src/./secret//key" }, false],
    [{ kind: "read", path: "other" }, false],
    [{ kind: "write", path: "notes/a.md", content: "" }, true],
    [{ kind: "write", path: "notes/deep/a.md", content: "" }, false],
    [{ kind: "move", from: "src/a", to: "elsewhere" }, false],
    [
      {
        kind: "copy",
        files: [
          { path: "src/a", content: "" },
          { path: "b", content: "" },
        ],
      },
      false,
    ],
    [{ kind: "patch", diff: "--- a/src/x\n+++ b/src/secret/y\n@@ -1 +1 @@\n-a\n+b\n" }, false],
    [{ kind: "patch", diff: "--- a/src/x\n+++ b/src/x\n@@ -1 +1 @@\n-a\n+b\n" }, true],
    [{ kind: "grep", pattern: "key", path: "src" }, false],
    [{ kind: "grep", pattern: "key", path: "src/open" }, true],
    [{ kind: "list", path: "src" }, true],
    [{ kind: "list", path: "src", recursive: true }, false],
    [{ kind: "archive", direction: "out", paths: ["src"] }, false],
  ] as const)("%j: %j", ([request, isAllowed]) => {
    expect(refusalBy(guarded, asks(request)) === undefined).toBe(isAllowed);
  });
});

describe("rule about commands", () => {
  const denied = rules({ commands: { deny: ["git push", "rm -rf **", "curl"] } });
  test.for([
    "git push origin main",
    "cd src && git push",
    "true; git   push",
    "A=1 git push",
    "(git push)",
    "if true; then git push; fi",
    "'git' pu\\sh",
    'echo "x" | curl http://a',
    "exec curl x",
    "rm -rf /",
  ])("denies %s", (command) => {
    expect(refusalBy(denied, run(command))).toMatch(/not allowed/);
    expect(refusalBy(denied, asks({ kind: "exec", argv: ["sh", "-c", command] }))).toMatch(/not allowed/);
  });

  test.for(["git status", "echo 'git push'", "rm -r a", "echo curl"])("lets %s pass", (command) => {
    expect(refusalBy(denied, run(command))).toBeUndefined();
  });

  test("a rule about commands that lists what is allowed lets nothing hide in a substitution or another interpreter", () => {
    const listed = rules({ commands: { allow: ["echo", "ls", "python3 main.py"] } });
    expect(refusalBy(listed, run("echo a; ls -l"))).toBeUndefined();
    expect(refusalBy(listed, asks({ kind: "exec", argv: ["python3", "main.py", "-v"] }))).toBeUndefined();
    for (const hidden of ["echo $(cat /etc/passwd)", "echo `id`", "ls <(id)", "$SHELL", "eval id", "sh x"])
      expect(refusalBy(listed, run(hidden)), hidden).toBeDefined();
  });
});

test("a job needs the shortest of the approvals that its rules ask for, and none for what they do not name", () => {
  const asked = rules(
    { approval: { kinds: ["remove"], commands: ["terraform apply"], expiresMs: 60_000 } },
    { approval: { kinds: ["re*"], expiresMs: 5_000 } },
  );
  expect(approvalMs(asked, run("terraform apply -auto-approve"))).toBe(60_000);
  expect(approvalMs(asked, run("terraform plan"))).toBeUndefined();
  expect(approvalMs(asked, run("sh deploy"))).toBe(60_000);
  expect(approvalMs(asked, asks({ kind: "remove", path: "a" }))).toBe(5_000);
  expect(approvalMs(asked, asks({ kind: "steps", steps: [{ kind: "remove", path: "a" }] }))).toBe(5_000);
  expect(approvalMs(asked, asks({ kind: "destroy" }))).toBeUndefined();
});

describe("stars", () => {
  test.for([
    ["*", "", true],
    ["a*c", "abbc", true],
    ["a*c", "abcd", false],
    ["?", "ab", false],
    ["**a**", "bab", true],
  ] as const)("in a word: %s and %s: %j", ([pattern, text, isSame]) => {
    expect(matchesWildcard(pattern, text)).toBe(isSame);
  });

  test("stars in paths stay within a name, and double ones do not", () => {
    expect(matchesPath("a/**/z", "a/z")).toBe(true);
    expect(matchesPath("a/**/z", "a/b/c/z/more")).toBe(true);
    expect(matchesPath("a/*/z", "a/b/c/z")).toBe(false);
    expect(matchesCommand("git ** --force", ["git", "push", "x", "--force"])).toBe(true);
    expect(matchesCommand("git push", ["git"])).toBe(false);
  });

  test("take no longer than the product of both lengths", () => {
    const before = performance.now();
    expect(matchesWildcard("*a".repeat(60), "a".repeat(20_000).concat("b"))).toBe(false);
    expect(matchesPath("**/".repeat(80), "a/".repeat(200))).toBe(true);
    expect(performance.now() - before).toBeLessThan(5_000);
  });
});
