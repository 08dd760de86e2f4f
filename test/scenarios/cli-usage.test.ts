import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runCli } from "../support/cli.ts";

test("the help of every command has an example and every option", async () => {
  const { stdout: overview } = await runCli(["help"]);
  const names = [...overview.matchAll(/^ {2}(?!berth)([a-z]+(?: [a-z]+)?) {2,}\S/gm)].map(
    (match) => match[1] ?? "",
  );
  expect(names).toEqual(expect.arrayContaining(["exec", "batch run", "cp", "doctor", "dev", "key create"]));
  const { code, stdout } = await runCli(["help", "all"]);
  expect(code).toBe(0);
  const pages = stdout.split(/^(?=berth )/m).filter((page) => page.startsWith("berth "));
  expect(pages.length).toBe(names.length);
  for (const name of names) {
    const page = pages.find((one) => new RegExp(`^berth ${name}( [A-Z[-]|\n)`).test(one)) ?? "";
    const [head = "", rest = ""] = page.split("Examples\n");
    const [examples = "", options = ""] = rest.split("Options\n");
    expect(head, name).toContain(`berth ${name}`);
    expect(examples, name).toContain(`berth ${name}`);
    expect(options, name).toContain("--json");
    // An example that teaches an option must be one that works.
    const taught = [...examples.replaceAll(/ -- .*/g, "").matchAll(/\s(--[a-z-]+)/g)].map(
      (match) => match[1] ?? "",
    );
    const ofOthers = /\| |&& |; |\$\(/.test(examples);
    if (!ofOthers) for (const option of taught) expect(options, `${name} ${option}`).toContain(option);
  }
});

test("berth help COMMAND and berth COMMAND --help print the same", async () => {
  const asked = await Promise.all([runCli(["batch", "run", "--help"]), runCli(["help", "batch", "run"])]);
  expect(asked[0]?.stdout).toMatch(/^berth batch run \[OPTIONS\] FILE\n/);
  expect(asked[1]).toEqual(asked[0]);
});

test("an option that does not exist is named, with the one that was probably meant", async () => {
  const { code, stdout, stderr } = await runCli(["exec", "acme", "--timout", "3s", "--", "ls"]);
  expect({ code, stdout }).toEqual({ code: 64, stdout: "" });
  expect(stderr).toContain("berth exec has no option --timout");
  expect(stderr).toContain("did you mean --timeout?");
  expect(stderr).toContain("berth exec --help");
});

test("a command that does not exist is named, with the one that was probably meant", async () => {
  const { code, stderr } = await runCli(["exce", "acme"]);
  expect(code).toBe(64);
  expect(stderr).toContain("there is no command exce");
  expect(stderr).toContain("did you mean berth exec?");
});

test.each([
  { args: [], says: "berth COMMAND --help" },
  { args: ["exec"], says: "TENANT is missing" },
  { args: ["exec", "acme"], says: "the command is missing" },
  { args: ["batch"], says: "berth batch run, berth batch status" },
  { args: ["exec", "acme", "--timeout", "soon", "--", "ls"], says: "soon is not a duration" },
  { args: ["exec", "acme", "--timeout", "--json", "--", "ls"], says: "--timeout needs a value" },
  { args: ["exec", "acme", "-e", "novalue", "--", "ls"], says: "novalue is not NAME=VALUE" },
  { args: ["exec", "acme", "--json=1", "--", "ls"], says: "--json takes no value" },
  { args: ["why", "one", "two"], says: "two is one too many" },
  { args: ["tenant", "pause", "ACME "], says: "a tenant's name begins" },
  { args: ["ps", ""], says: "a tenant's name is empty" },
  { args: ["logs", "--after", "soon", "job"], says: "soon is not an event's id" },
  { args: ["cp", "a", "b"], says: "one side has to be in a sandbox" },
  { args: ["cp", "a:b", "c:d"], says: "one side has to be on this machine" },
  { args: ["key", "create", "x"], says: "either --admin or --tenant" },
  {
    args: ["key", "create", "x", "--admin", "--pool", "gpu"],
    says: "leave --profile, --pool, --agent and --set out",
  },
  { args: ["tenant", "grant", "acme"], says: "--profile NAME, --pool NAME or --peer TENANT is needed" },
  { args: ["tenant", "grant", "shared", "--pool", "gpu"], says: "shared is reserved" },
  { args: ["mcp"], says: "the tenant is missing" },
  { args: ["mcp", "acme", "--tenant", "globex"], says: "two tenants are named: globex and acme" },
  { args: ["mcp", "--tenant", "ACME "], says: "a tenant's name begins" },
  { args: ["mcp", "--tenant", "acme", "--session", "BAD "], says: "--session: a session's name begins" },
  { args: ["mcp", "--tenant", "acme", "--url", "ftp://x"], says: "--url: BERTH_URL is http" },
  {
    args: ["mcp", "--tenant", "acme", "--url", "http://x", "--redis", "redis://x"],
    says: "either --url or --redis",
  },
  { args: ["completion", "tcsh"], says: "tcsh is not one of bash, zsh, fish" },
])("a command line that cannot be meant ends with 64: berth $args", async ({ args, says }) => {
  const { code, stderr, stdout } = await runCli(args);
  expect(stderr).toContain(says);
  expect({ code, stdout }).toEqual({ code: 64, stdout: "" });
});

test.each([
  { env: { REDIS_URL: "ftp://x:secret-word@y" }, says: "REDIS_URL" },
  { env: { REDIS_URL: "redis://:secret-word@" }, says: "REDIS_URL" },
  { env: { BERTH_URL: "http://me:secret-word@127.0.0.1" }, says: "BERTH_URL" },
  { env: { BERTH_KEY: "secret-word with spaces" }, says: "BERTH_KEY" },
])("a variable that cannot be used ends with 78 and is named, not shown: $says", async ({ env, says }) => {
  const { code, stderr } = await runCli(["ps"], { env });
  expect(code).toBe(78);
  expect(stderr).toContain(says);
  expect(stderr).not.toContain("secret-word");
});

test("a variable of Berth's that no program reads is named, with the one that was probably meant", async () => {
  const env = { BERTH_URI: "http://127.0.0.1:59", BERTH_LEASE_MS: "1", REDIS_URL: "redis://127.0.0.1:9" };
  const { stderr } = await runCli(["ps"], { env });
  expect(stderr).toContain(
    "berth: warning: BERTH_URI is not a setting of Berth and has no effect; did you mean BERTH_URL?",
  );
  expect(stderr).not.toContain("BERTH_LEASE_MS");
});

test.each([
  { what: "Redis", env: { REDIS_URL: "redis://:secret-word@127.0.0.1:9" } },
  { what: "a gateway", env: { BERTH_URL: "http://127.0.0.1:59", BERTH_KEY: "secret-word" } },
])("$what that does not answer ends with 69 and advice at once, and hides its password", async ({ env }) => {
  const began = performance.now();
  await runCli(["version"]);
  const startMs = performance.now() - began;
  const { code, stderr } = await runCli(["exec", "acme", "--", "ls"], { env });
  expect(code).toBe(69);
  // A call waits for a reconnection for ten seconds, which this one must not; starting takes what it takes.
  expect(performance.now() - began - startMs).toBeLessThan(8_000 + 4 * startMs);
  expect(stderr.split("\n").length).toBeGreaterThan(1);
  expect(stderr).not.toContain("secret-word");
});

test("berth names a local file that is missing, without an error code of the system", async () => {
  const { code, stderr } = await runCli(["schedule", "put", "s", "--file", "nosuch.json"], { cwd: tmpdir() });
  expect(code).toBe(1);
  expect(stderr).toBe(`berth: ${join(tmpdir(), "nosuch.json")}: there is no such file or directory here\n`);
});

test("with --json a failure is JSON on stderr too, with its code", async () => {
  const { code, stdout, stderr } = await runCli(["ps", "--json"], {
    env: { REDIS_URL: "redis://127.0.0.1:9" },
  });
  expect({ code, stdout }).toEqual({ code: 69, stdout: "" });
  const { error } = JSON.parse(stderr);
  expect(error).toMatchObject({ code: "redis-unreachable", message: expect.any(String) });
  expect(error.advice.length).toBeGreaterThan(0);
});

test("berth prints no colours where its output is not a terminal", async () => {
  for (const args of [["help"], ["exec", "--nope"], ["version"]]) {
    const { stdout, stderr } = await runCli(args);
    expect(stdout + stderr).not.toContain("\x1b");
  }
});

test.each(["bash", "zsh", "fish"])("the completion for %s is one that the shell can read", async (shell) => {
  const { code, stdout } = await runCli(["completion", shell]);
  expect(code).toBe(0);
  expect(stdout).toContain("batch");
  const directory = await mkdtemp(join(tmpdir(), "berth-completion-"));
  try {
    const file = join(directory, "script");
    await writeFile(file, stdout);
    const checked = spawnSync(shell, ["-n", file]);
    // Not every machine has every shell; what bash says is always looked at.
    if (checked.error && shell !== "bash") return;
    expect({ status: checked.status, stderr: checked.stderr.toString() }).toEqual({ status: 0, stderr: "" });
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("the completion for bash completes commands, their second words and their options", async () => {
  const { stdout } = await runCli(["completion", "bash"]);
  const tries = [
    ["berth", "ex"],
    ["berth", "batch", "ru"],
    ["berth", "batch", "run", "--ou"],
    ["berth", "exec", "acme", "--timeo"],
  ];
  const completed = tries.map((words) => {
    const quoted = words.map((word) => `'${word}'`).join(" ");
    const script = `${stdout}\nCOMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _berth; echo "\${COMPREPLY[@]}"`;
    return spawnSync("bash", ["-c", script]).stdout.toString().trim();
  });
  expect(completed).toEqual(["exec", "run", "--out", "--timeout"]);
});

test("berth help environment lists every variable with its meaning", async () => {
  const { stdout } = await runCli(["help", "environment"]);
  for (const name of ["REDIS_URL", "BERTH_URL", "BERTH_KEY", "NO_COLOR"])
    expect(stdout).toMatch(new RegExp(`^ {2}${name} +\\S`, "m"));
});
