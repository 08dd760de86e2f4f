import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { CliRun, runCli } from "../support/cli.ts";
import { busybox, type TestFleet, test as withFleet } from "../support/fleet.ts";

const test = withFleet.extend<{ env: Record<string, string> }>({
  env: async ({ fleet }, use) => {
    await fleet.worker("worker-1", busybox);
    await use({ REDIS_URL: fleet.redis.url });
  },
});

/** How the only job that ended last did end. */
async function resultOf(fleet: TestFleet, jobId: string) {
  const job = await fleet.client().job(jobId);
  return job?.result;
}

test("berth exec passes on the command's exit code, stdout and stderr", async ({ env }) => {
  const run = (...args: string[]) => runCli(["exec", "acme", ...args], { env });
  expect(await run("--", "echo out; echo err >&2; exit 3")).toEqual({
    code: 3,
    stdout: "out\n",
    stderr: "err\n",
  });
  expect((await run("--", "true")).code).toBe(0);
  expect(await run("--", "sleep 30 & kill -9 $$")).toMatchObject({ code: 137 });
  const slow = await run("--timeout", "300ms", "--", "sleep 30");
  expect(slow).toMatchObject({ code: 124, stdout: "" });
  expect(slow.stderr).toContain("timed out after 0.3s");
  expect((await run("--", "no-such-program")).code).toBe(127);
  // Without a shell, init itself finds no program.
  const missing = await run("--", "no-such-program", "-x");
  expect(missing).toEqual({ code: 127, stdout: "", stderr: "berth: command not found: no-such-program\n" });
  expect((await run("--", "/etc/passwd", "-x")).code).toBe(126);
});

test("berth exec runs several words without a shell, and passes on options behind the first word", async ({
  env,
}) => {
  const run = (...args: string[]) => runCli(["exec", "acme", ...args], { env });
  expect((await run("--", "printf", "%s|", "a  b", "$HOME", "*")).stdout).toBe("a  b|$HOME|*|");
  expect((await run("echo", "-n", "--json", "x")).stdout).toBe("--json x");
  expect((await run("-e", "GREETING=hello there", "-C", "", "--", 'echo "$GREETING"')).stdout).toBe(
    "hello there\n",
  );
});

test("berth exec prints output while the command runs, in the order it was written", async ({ env }) => {
  const script = "echo one; until [ -e go ]; do sleep 0.05; done; echo two";
  const run = new CliRun(["exec", "acme", "--session", "a", "--", script], { env });
  await run.says("one\n");
  expect(run.process.exitCode).toBeNull();
  expect((await runCli(["exec", "acme", "--session", "b", "--", "touch go"], { env })).code).toBe(0);
  expect(await run.end()).toEqual({ code: 0, stdout: "one\ntwo\n", stderr: "" });
});

test("berth exec -i passes stdin to the command, text and any bytes", async ({ env }) => {
  const text = await runCli(["exec", "acme", "-i", "--", "wc -l"], { env, stdin: "a\nb\nc\n" });
  expect(text.stdout.trim()).toBe("3");
  const bytes = Buffer.concat([randomBytes(100_000), Buffer.from([0xff, 0x00, 0x80])]);
  const run = new CliRun(["exec", "acme", "-i", "--", "cat"], { env, stdin: bytes });
  expect((await run.end()).code).toBe(0);
  expect(run.bytes.equals(bytes)).toBe(true);
  // Nor does it leave anything behind.
  expect((await runCli(["ls", "acme"], { env })).stdout).toBe("");
});

test("berth exec -i takes stdin that is longer than a request may be, and leaves no file behind", async ({
  env,
}) => {
  const run = (stdin: Buffer, ...args: string[]) =>
    new CliRun(["exec", "acme", "-i", ...args], { env, stdin }).end();
  const long = randomBytes(20 * 1024 * 1024 + 1);
  const sum = createHash("sha256").update(long).digest("hex");
  expect(await run(long, "--", "sha256sum")).toEqual({ code: 0, stdout: `${sum}  -\n`, stderr: "" });
  const repeated = await run(long, "--id", "mine", "--", "sha256sum");
  expect(repeated).toMatchObject({ code: 64, stdout: "" });
  expect(repeated.stderr).toContain("so --id cannot be used");
  expect(await run(long, "--", "no-such-program", "-x")).toMatchObject({ code: 127 });
  await expect.poll(async () => (await runCli(["glob", "acme", "**", "--dot"], { env })).stdout).toBe("");
});

test("berth exec -i with long stdin and --fork-of writes it into the fork, and not into the tenant's usual sandbox", async ({
  fleet,
  env,
}) => {
  await runCli(["exec", "acme", "--", "echo one > a"], { env });
  await runCli(["snapshot", "create", "acme", "ready"], { env });
  const long = Buffer.alloc(9 * 1024 * 1024, "y");
  const run = (...args: string[]) =>
    new CliRun(["exec", "acme", "-i", "--fork-of", "ready", ...args], { env, stdin: long }).end();
  const counted = { code: 0, stdout: `${long.length}\na\n`, stderr: "" };
  expect(await run("--", "wc -c; ls -A")).toEqual(counted);
  expect(await run("--session", "kept", "--", "wc -c; ls -A")).toEqual(counted);
  expect(await run("--", "no-such-program", "-x")).toMatchObject({ code: 127 });
  const sandboxes = async () =>
    (await fleet.client().sandboxes({ tenant: "acme", limit: 20 })).map((one) => one.key);
  await expect.poll(async () => (await sandboxes()).sort()).toEqual(["acme", "acme.s.kept"]);
  const usual = ["glob", "acme", "**", "--dot"];
  expect((await runCli(usual, { env })).stdout).toBe("a\n");
  const kept = [...usual, "--scope", "session", "--session", "kept"];
  await expect.poll(async () => (await runCli(kept, { env })).stdout).toBe("a\n");
});

test("berth exec -i with more stdin than the workspace's quota is refused with that reason, and leaves no file behind", async ({
  env,
}) => {
  expect(await runCli(["profile", "set", "tenant.acme", "limits.workspaceBytes=10m"], { env })).toMatchObject(
    {
      code: 0,
    },
  );
  const stdin = Buffer.alloc(24 * 1024 * 1024, "y");
  const { code, stdout, stderr } = await runCli(["exec", "acme", "-i", "--", "wc -c"], { env, stdin });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/quota/);
  await expect.poll(async () => (await runCli(["glob", "acme", "**", "--dot"], { env })).stdout).toBe("");
});

test("a job's id with another command is refused, and with the same gives the first result", async ({
  env,
}) => {
  const run = (...words: string[]) => runCli(["exec", "acme", "--id", "mine", "--", ...words], { env });
  expect(await run("echo first; exit 3")).toMatchObject({ code: 3, stdout: "first\n" });
  expect(await run("echo first; exit 3")).toMatchObject({ code: 3, stdout: "first\n" });
  const other = await run("echo second");
  expect(other).toMatchObject({ code: 1, stdout: "" });
  expect(other.stderr).toContain("the job id mine was used before, by another job of the sandbox acme");
  for (const _ of [1, 2]) {
    const args = ["exec", "acme", "--id", "bytes", "-i", "--", "wc", "-c"];
    expect(await runCli(args, { env, stdin: Buffer.of(0xff, 0, 0x80) })).toMatchObject({
      code: 0,
      stdout: "3\n",
    });
  }
});

test("Ctrl-C during berth exec cancels the job and prints that it did", async ({ fleet, env }) => {
  const id = "to-be-cancelled";
  const run = new CliRun(["exec", "acme", "--id", id, "--", "echo begun; sleep 60"], { env });
  await run.says("begun");
  const ended = await run.signal("SIGINT");
  expect(ended.code).toBe(130);
  expect(ended.stderr).toContain(`cancelling the job ${id}`);
  expect((await resultOf(fleet, id))?.outcome.kind).toBe("cancelled");
});

test("berth exec cancels the job when the reader of its output goes away", async ({ fleet, env }) => {
  const id = "without-reader";
  const run = new CliRun(["exec", "acme", "--id", id, "--", "while :; do echo more; sleep 0.05; done"], {
    env,
  });
  await run.says("more");
  run.process.stdout?.destroy();
  expect((await run.end()).code).toBe(141);
  expect((await resultOf(fleet, id))?.outcome.kind).toBe("cancelled");
});

test("berth exec --json prints the result as one value, and keeps the command's exit code", async ({
  env,
}) => {
  const { code, stdout, stderr } = await runCli(["exec", "acme", "--json", "--", "echo hi; exit 4"], { env });
  expect({ code, stderr }).toEqual({ code: 4, stderr: "" });
  expect(JSON.parse(stdout)).toMatchObject({
    id: expect.any(String),
    exitCode: 4,
    outcome: { kind: "exited", code: 4 },
    value: { stdout: "hi\n" },
    text: "hi\n[exit 4]",
  });
});

test("berth exec --block prints the text that an agent reads, framed", async ({ env }) => {
  const block = "[/exec echo hi; exit 4]\nhi\n[exit 4]\n[END EXEC]";
  const args = ["exec", "acme", "--block", "--", "echo hi; exit 4"];
  expect(await runCli(args, { env })).toEqual({ code: 4, stdout: `${block}\n`, stderr: "" });
  expect(JSON.parse((await runCli(args.toSpliced(1, 0, "--json"), { env })).stdout).text).toBe(block);
  const refused = await runCli(["exec", "acme", "--block", "--cwd", "none", "--", "ls"], { env });
  expect(refused.stdout).toMatch(/^\[\/exec ls\]\nERR: .+\n\[END EXEC\]\n$/);
});

test("berth logs -f follows a detached job from another terminal, and exits with its exit code", async ({
  env,
}) => {
  const begun = await runCli(["exec", "acme", "-d", "--", "echo one; sleep 0.3; echo two; exit 5"], { env });
  const id = begun.stdout.trim();
  expect(await runCli(["logs", "-f", id], { env })).toEqual({ code: 5, stdout: "one\ntwo\n", stderr: "" });
  expect((await runCli(["logs", id], { env })).stdout).toBe("one\ntwo\n");
  const events = (await runCli(["logs", "--json", id], { env })).stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(events.at(0).type).toBe("started");
  expect(events.at(-1)).toMatchObject({ type: "finished", result: { outcome: { kind: "exited", code: 5 } } });
  const after = await runCli(["logs", "--json", "--after", events.at(-2).id, id], { env });
  expect(JSON.parse(after.stdout).type).toBe("finished");
});

test("berth logs of a running job prints the output so far and exits", async ({ env }) => {
  const begun = await runCli(["exec", "acme", "-d", "--", "echo so far; sleep 60"], { env });
  const id = begun.stdout.trim();
  await expect.poll(async () => (await runCli(["logs", id], { env })).stdout).toBe("so far\n");
  expect((await runCli(["cancel", id], { env })).code).toBe(0);
  const followed = await runCli(["logs", "-f", id], { env });
  expect(followed.code).toBe(130);
  expect(followed.stderr).toContain("cancelled");
});

test("berth exec --artifact --save saves the files that a command leaves", async ({ fleet, env }) => {
  const directory = await mkdtemp(join(tmpdir(), "berth-cli-"));
  try {
    const command = "mkdir -p out && echo 42 > out/answer.txt && echo not > other.txt";
    const args = ["exec", "acme", "--artifact", "out/*", "--save", directory, "--", command];
    const { code, stderr } = await runCli(args, {
      env: { ...env, BERTH_ARTIFACTS: join(fleet.workspaces, "../artifacts") },
    });
    expect(code).toBe(0);
    expect(stderr).toContain("artifact out/answer.txt, 3 bytes");
    expect(await readFile(join(directory, "out/answer.txt"), "utf8")).toBe("42\n");
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("berth exec exits with 64 and prints the reason when its job is invalid", async ({ env }) => {
  const { code, stderr } = await runCli(["exec", "Not a tenant ", "--", "ls"], { env });
  expect(code).toBe(64);
  expect(stderr).toContain("a tenant's name begins or ends with a space");
  const outside = await runCli(["exec", "acme", "--cwd", "../..", "--", "ls"], { env });
  expect(outside.code).toBe(64);
  expect(outside.stderr).toContain("invalid path");
});
