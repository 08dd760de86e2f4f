import { describe, expect, test } from "vitest";
import { accessRule, approvalMs, jobRequest, refusalBy } from "../src/index.ts";
import { matchesCommand, matchesPath, matchesWildcard } from "../src/wildcard.ts";

const rules = (...texts: object[]) => texts.map((one) => accessRule.parse(one));
const asks = (request: object) => jobRequest.parse(request);
const run = (command: string) => asks({ kind: "exec", command });

describe("rule about kinds", () => {
  test("a rule about kinds refuses what it denies, even if it also allows it, and what it does not allow", () => {
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
    [{ kind: "grep", pattern: "key", path: "src" }, false],
    [{ kind: "grep", pattern: "key", path: "src/open" }, true],
    [{ kind: "list", path: "src" }, true],
    [{ kind: "list", path: "src", recursive: true }, false],
    [{ kind: "archive", direction: "out", paths: ["src"] }, false],
    [{ kind: "archive", direction: "in", path: "src", content: "" }, false],
    [{ kind: "archive", direction: "in", path: "src/open", content: "" }, true],
    [{ kind: "move", from: "src", to: "src2" }, false],
    [{ kind: "move", from: "src/a", to: "src/b" }, true],
    [{ kind: "move", from: "src/a", to: "src/secret" }, false],
    [{ kind: "remove", path: "src", recursive: true }, false],
    [{ kind: "remove", path: "src/open", recursive: true }, true],
    [{ kind: "remove", path: "src/a" }, true],
  ] as const)("a rule about paths decides for %j that allowed is %j", ([request, isAllowed]) => {
    expect(refusalBy(guarded, asks(request)) === undefined).toBe(isAllowed);
  });
});

test("a rule about paths lets a directory move although a name is denied everywhere, but not if a longer path in it is denied", () => {
  const move = asks({ kind: "move", from: "a", to: "b" });
  expect(refusalBy(rules({ paths: { deny: ["**/.env"] } }), move)).toBeUndefined();
  expect(refusalBy(rules({ paths: { deny: ["**/keys/**"] } }), move)).toBeUndefined();
  expect(refusalBy(rules({ paths: { deny: ["**/a/keys"] } }), move)).toMatch(/would change it/);
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
    "/usr/bin/git push",
    "./bin/curl x",
    "coproc curl x",
    "function f { git push; }; f",
    "alias g='git push'; g",
    "trap 'git push' EXIT",
    "awk 'BEGIN { system(\"git push\") }'",
    "setarch -R git push",
    "git \\\npush origin",
    "gi\\\nt push",
    "git push>/dev/null",
    "git push\t>out",
    ">out git push",
    "2>&1 git push",
    "</dev/null git push",
    "git 2>/dev/null push",
    "git <in push",
    "2> out git push",
    'echo "$(git push)"',
    'echo "a `curl x` b"',
    'echo "$(echo "$(git push)")"',
    'echo "$x$(git push)"',
    'echo "$(git push',
    "cat <(git push)",
    "git push&",
  ])("a rule about commands denies %s", (command) => {
    expect(refusalBy(denied, run(command))).toMatch(/not allowed/);
    expect(refusalBy(denied, asks({ kind: "exec", argv: ["sh", "-c", command] }))).toMatch(/not allowed/);
  });

  const harmless = [
    "git status",
    "echo 'git push'",
    "rm -r a",
    "echo curl",
    "ls > curl",
    "echo '$(git push)'",
  ];
  test.for([...harmless, 'echo "git push"', 'echo "pu\\sh" >> curl', "a\u00a0git push", "git\u00a0push x"])(
    "a rule about commands lets %s pass",
    (command) => {
      expect(refusalBy(denied, run(command))).toBeUndefined();
    },
  );

  const pushes: readonly (readonly string[])[] = [
    ["bash", "-lc", "git push"],
    ["sh", "-ec", "git push"],
    ["/bin/sh", "-e", "-c", "git push"],
    ["bash", "-o", "pipefail", "-c", "git push"],
    ["bash", "-co", "pipefail", "git push"],
    ["sh", "-c", "sh -c 'git push'"],
    ["env", "git", "push"],
    ["env", "-i", "A=1", "git", "push"],
    ["/usr/bin/env", "-S", "git push"],
    ["timeout", "-k", "1", "5", "git", "push"],
    ["nice", "-n", "5", "git", "push"],
    ["nohup", "setsid", "git", "push"],
    ["sudo", "-u", "x", "git", "push"],
    ["xargs", "git"],
    ["busybox", "sh", "-c", "git push"],
    ["timeout", "5", "sh", "-c", "git push"],
    ["find", ".", "-exec", "git", "push", ";"],
    ["find", ".", "-exec", "sh", "-c", "git push", ";"],
    ["sh"],
    ["bash", "-s"],
    ["timeout", "5", "sh"],
    ["python3", "-c", "import os"],
    ["python3"],
    ["python3", "-"],
    ["node", "-e", "1"],
    ["node", "--eval=1"],
    ["perl", "-pe", "1"],
    ["env", ...Array.from({ length: 200 }, (_, index) => `A${index}=1`), "git", "push"],
  ];
  test.for(pushes.map((argv) => ({ argv })))(
    "a rule about commands denies one behind other programs, or one that cannot be seen: $argv",
    ({ argv }) => {
      const named = asks({ kind: "exec", argv: [...argv] });
      expect(refusalBy(denied, named)).toBeDefined();
      expect(approvalMs(rules({ approval: { commands: ["git push"] } }), named)).toBeDefined();
      const line = argv.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
      expect(refusalBy(denied, run(line)), line).toBeDefined();
      expect(approvalMs(rules({ approval: { commands: ["git push"] } }), run(line)), line).toBeDefined();
    },
  );

  test.for([
    ["timeout", "5", "make"],
    ["find", ".", "-name", "git"],
    ["awk", "{ print $1 }", "file"],
    ["find", ".", "-exec", "ls", "{}", ";"],
    ["python3", "-m", "pytest"],
    ["python3", "main.py", "-c"],
    ["python3", "--version"],
    ["bash", "script.sh"],
    ["env", "A=1", "make"],
  ] as const)("a rule about commands lets %j pass, whose commands can be seen", (argv) => {
    expect(refusalBy(denied, asks({ kind: "exec", argv: [...argv] }))).toBeUndefined();
  });

  test("a rule about commands holds for jobs of the kind code", () => {
    const code = (language: string, source: string) => asks({ kind: "code", language, source });
    expect(refusalBy(denied, code("bash", "set -e\ngit push"))).toMatch(/git push is not allowed/);
    expect(refusalBy(denied, code("sh", "make"))).toBeUndefined();
    expect(refusalBy(denied, code("python", "print(1)"))).toMatch(/cannot be seen/);
    expect(refusalBy(rules({ commands: { allow: ["ls"] } }), code("node", "1"))).toBeDefined();
    expect(refusalBy(rules({ commands: { allow: ["python3"] } }), code("python", "1"))).toBeUndefined();
    const asked = rules({ approval: { commands: ["git push"] } });
    expect(approvalMs(asked, code("python", "1"))).toBeDefined();
    expect(approvalMs(asked, code("sh", "git push"))).toBeDefined();
    expect(approvalMs(asked, code("sh", "git status"))).toBeUndefined();
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

test.for([
  "dep$x",
  "dep$'loy'",
  "/usr/local/bin/deploy now",
  "/opt/*/deploy",
  "dep?oy",
  "de[p]loy",
  "{deploy,now}",
  "timeout 5 $x",
  "terraform ap$x",
  "terraform $x apply",
  "terraform ap?ly",
  "terraform {apply,-auto-approve}",
])("a job needs an approval for %s, of which a shell may make a command that needs one", (command) => {
  const asked = rules({ approval: { commands: ["deploy", "terraform apply"] } });
  expect(approvalMs(asked, run(command))).toBeDefined();
});

test.for(['echo "$HOME"', "git commit -m 'costs $5'", "[ -f a ] && ls *.ts", "[[ -f a ]]"])(
  "a job needs no approval for %s",
  (command) => {
    const asked = rules({ approval: { commands: ["deploy", "terraform apply"] } });
    expect(approvalMs(asked, run(command))).toBeUndefined();
  },
);

test("a program of another directory is not the one that a rule allows", () => {
  const listed = rules({ commands: { allow: ["git status"] } });
  expect(refusalBy(listed, run("git status"))).toBeUndefined();
  expect(refusalBy(listed, run("./git status"))).toBeDefined();
});

test("a line of very many substitutions is taken apart in one pass for each depth", () => {
  const listed = rules({ commands: { deny: ["git push"] } });
  for (const text of ["$(", "`", "$(a)", '$("', "\\\n", ">"])
    expect(() => refusalBy(listed, run(`echo "${text.repeat(30_000)}"`))).not.toThrow();
});

test("what more commands than are looked through run cannot be seen", () => {
  const many = asks({ kind: "code", language: "sh", source: "true;".repeat(200_000) });
  expect(refusalBy(rules({ commands: { deny: ["curl"] } }), many)).toMatch(/cannot be seen/);
  expect(refusalBy(rules({ commands: { allow: ["true"] } }), many)).toBeDefined();
  expect(approvalMs(rules({ approval: { commands: ["deploy"] } }), many)).toBeDefined();
  const few = asks({ kind: "code", language: "sh", source: "true;".repeat(1_000) });
  expect(refusalBy(rules({ commands: { allow: ["true"] } }), few)).toBeUndefined();
});

describe("stars", () => {
  test.for([
    ["*", "", true],
    ["a*c", "abbc", true],
    ["a*c", "abcd", false],
    ["?", "ab", false],
    ["**a**", "bab", true],
  ] as const)("the pattern %s against the word %j matches: %j", ([pattern, text, isSame]) => {
    expect(matchesWildcard(pattern, text)).toBe(isSame);
  });

  test("a star in a path stays within a name, and a double star crosses directories", () => {
    expect(matchesPath("a/**/z", "a/z")).toBe(true);
    expect(matchesPath("a/**/z", "a/b/c/z/more")).toBe(true);
    expect(matchesPath("a/*/z", "a/b/c/z")).toBe(false);
    expect(matchesCommand("git ** --force", ["git", "push", "x", "--force"])).toBe(true);
    expect(matchesCommand("git push", ["git"])).toBe(false);
  });

  test("matching stars takes no longer than the product of both lengths", () => {
    const before = performance.now();
    expect(matchesWildcard("*a".repeat(60), "a".repeat(20_000).concat("b"))).toBe(false);
    expect(matchesPath("**/".repeat(80), "a/".repeat(200))).toBe(true);
    expect(performance.now() - before).toBeLessThan(5_000);
  });
});
