import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { CliRun, runCli } from "../support/cli.ts";
import { CuttingProxy } from "../support/cutting-proxy.ts";
import { busybox } from "../support/fleet.ts";
import { adminKey, fleetTest as test } from "../support/gateway.ts";

test("through a gateway a command behaves as it does through Redis", async ({ fleet, gateways }) => {
  await fleet.worker("worker-1", busybox);
  const gateway = await gateways.start();
  const env = { BERTH_URL: gateway.url, BERTH_KEY: adminKey };
  const run = (...args: string[]) => runCli(args, { env });
  const ended = await run("exec", "acme", "--", "echo out; echo err >&2; exit 3");
  expect(ended).toEqual({ code: 3, stdout: "out\n", stderr: "err\n" });
  const odd = await new CliRun(["exec", "acme", "-i", "--", "cat"], {
    env,
    stdin: Buffer.from([0, 255, 10]),
  });
  await odd.end();
  expect([...odd.bytes]).toEqual([0, 255, 10]);
  const job = (await run("exec", "acme", "-d", "--", "exit 7")).stdout.trim();
  expect((await run("logs", "-f", job)).code).toBe(7);
  expect((await run("why", job)).stdout).toContain("finished");
  expect(await run("cancel", job)).toMatchObject({ code: 0, stdout: `${job} had ended already\n` });
  const events = (await run("logs", "--json", job)).stdout.trimEnd().split("\n");
  const last = JSON.parse(events.at(-1) ?? "{}").id;
  expect((await run("logs", "-f", "--after", last, job)).code).toBe(7);
  const foreign = await run("exec", "acme", "--pool", "gpu", "--", "true");
  expect(foreign).toMatchObject({ code: 1, stderr: expect.stringContaining("Use the same pool") });
  expect((await run("fleet")).stdout).toContain("worker-1");
  expect((await run("why", "unknown")).code).toBe(1);
});

test("jobs that wait, run, or are to run again are listed alike through Redis and a gateway", async ({
  fleet,
  gateways,
}) => {
  const gateway = await gateways.start();
  const doors = [{ REDIS_URL: fleet.redis.url }, { BERTH_URL: gateway.url, BERTH_KEY: adminKey }] as const;
  const both = (...args: string[]) => Promise.all(doors.map((env) => runCli(["ps", ...args], { env })));
  const listed = async (...args: string[]) =>
    (await both("--json", ...args)).map(({ stdout }) => JSON.parse(stdout).jobs);
  const berth = fleet.client();
  const retry = { attempts: 2, backoffMs: 3_600_000, maxBackoffMs: 3_600_000 };
  await berth.tenant("acme").exec("false", { id: "again", retry }).enqueued();
  await berth.tenant("acme").exec("sleep 300", { id: "runs" }).enqueued();
  await berth.tenant("acme").exec("true", { id: "behind" }).enqueued();
  await berth.tenant("globex").exec("true", { id: "other", session: "s" }).enqueued();
  const other = { id: "other", tenant: "globex", session: "s", kind: "exec", sandbox: "globex" };
  const expected = [{ ...other, state: "waiting", acceptedAtMs: expect.any(Number) }];
  expect(await listed("globex")).toEqual([expected, expected]);
  const [some, sameSome] = await listed("--limit", "2");
  expect(some.map(({ id }: { id: string }) => id)).toEqual(["again", "runs"]);
  expect(sameSome).toEqual(some);
  const [text, sameText] = (await both()).map(({ stdout }) => stdout.replaceAll(/ \d+ (ms|s|min)$/gm, ""));
  expect(text).toMatch(/^JOB +TENANT +SESSION +KIND +STATE +AGE\nagain +acme +main +exec +waiting/);
  expect(sameText).toBe(text);
  const tooMany = await runCli(["ps", "--limit", "1001"], { env: doors[1] });
  expect(tooMany).toMatchObject({ code: 64, stderr: expect.stringContaining("at most 1000 jobs") });

  await fleet.worker("worker-1", busybox);
  const states = async () =>
    (await listed("acme")).map((jobs) =>
      jobs.map(({ id, state }: { id: string; state: string }) => `${id} ${state}`),
    );
  const running = ["again scheduled", "runs running", "behind waiting"];
  await expect.poll(states, { timeout: 30_000 }).toEqual([running, running]);
  for (const id of ["again", "runs", "behind"]) await berth.cancel(id);
});

test("logs of a retried job are the same through Redis and through a gateway", async ({
  fleet,
  gateways,
}) => {
  await fleet.worker("worker-1", busybox);
  const gateway = await gateways.start();
  const redis = { REDIS_URL: fleet.redis.url };
  const http = { BERTH_URL: gateway.url, BERTH_KEY: adminKey };
  const retry = { attempts: 2, backoffMs: 100, jitter: 0 };
  await fleet.client().tenant("acme").exec("echo try; exit 3", { id: "twice", retry });
  const events = async (env: Record<string, string>) =>
    (await runCli(["logs", "-f", "--json", "twice"], { env })).stdout;
  expect(
    (await events(http))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).type),
  ).toEqual([...["started", "stdout", "retrying"], ...["started", "stdout", "finished"]]);
  expect(await events(http)).toBe(await events(redis));
  const logged = await runCli(["logs", "-f", "twice"], { env: http });
  expect(logged).toEqual({
    code: 3,
    stdout: "try\ntry\n",
    stderr: "berth: run 1 ended: exit code 3; the next begins in 100 ms\n",
  });
  expect(await runCli(["logs", "-f", "twice"], { env: redis })).toEqual(logged);
  const last = JSON.parse((await events(redis)).trimEnd().split("\n").at(-1) ?? "{}").id;
  expect((await runCli(["logs", "-f", "--after", last, "twice"], { env: redis })).code).toBe(3);
  const live = await runCli(["exec", "acme", "--retries", "1", "--", "exit 4"], { env: http });
  expect(live.stderr).toMatch(
    /^berth: run 1 ended: exit code 4; the next begins in .*\nberth: run 2 begins on worker-1\n$/,
  );
});

test("an interrupted command is cancelled through the gateway too", async ({ fleet, gateways }) => {
  await fleet.worker("worker-1", busybox);
  const gateway = await gateways.start();
  const env = { BERTH_URL: gateway.url, BERTH_KEY: adminKey };
  const run = new CliRun(["exec", "acme", "--id", "stop-me", "--", "echo begun; sleep 60"], { env });
  await run.says("begun");
  expect((await run.signal("SIGINT")).code).toBe(130);
  expect((await (await fleet.client().job("stop-me"))?.result)?.outcome.kind).toBe("cancelled");
});

test("output is followed across a gateway that is restarted, each line once", async ({ fleet, gateways }) => {
  await fleet.worker("worker-1", busybox);
  const first = await gateways.start();
  const env = { BERTH_URL: first.url, BERTH_KEY: adminKey };
  const script = "echo one; until [ -e go ]; do sleep 0.05; done; echo two; exit 4";
  const run = new CliRun(["exec", "acme", "--", script], { env });
  await run.says("one\n");
  const port = String(first.port);
  await first.stop();
  await gateways.start({ BERTH_GATEWAY_PORT: port });
  await fleet.client().tenant("acme").exec("touch go", { session: "other" });
  expect(await run.end()).toEqual({ code: 4, stdout: "one\ntwo\n", stderr: "" });
});

test("files, a batch and its artifacts go through a gateway", async ({ fleet, gateways }) => {
  await fleet.worker("worker-1", busybox);
  const gateway = await gateways.start({ BERTH_ARTIFACTS: join(fleet.workspaces, "../artifacts") });
  const env = { BERTH_URL: gateway.url, BERTH_KEY: adminKey };
  const here = await mkdtemp(join(tmpdir(), "berth-cli-"));
  const run = (...args: string[]) => runCli(args, { env, cwd: here });
  try {
    await writeFile(join(here, "large"), Buffer.alloc(2_000_000, "abc"));
    expect((await run("cp", "large", "acme:")).code).toBe(0);
    expect((await run("cp", "acme:large", "back")).code).toBe(0);
    expect((await readFile(join(here, "back"))).equals(await readFile(join(here, "large")))).toBe(true);
    const jobs = [0, 1, 2].map((index) => ({
      tenant: "acme",
      session: `s${index}`,
      request: {
        kind: "exec",
        command: `echo ${index} > f${index}; exit ${index}`,
        artifacts: [`f${index}`],
      },
    }));
    await writeFile(join(here, "jobs.jsonl"), jobs.map((job) => JSON.stringify(job)).join("\n"));
    const ran = await run("batch", "run", "jobs.jsonl", "--id", "by-http", "--json", "--artifacts", "kept");
    expect(ran.code).toBe(1);
    expect(JSON.parse(ran.stdout)).toMatchObject({ finished: 3, failed: 2, outcomes: { exited: 3 } });
    expect(await readFile(join(here, "kept/2/f2"), "utf8")).toBe("2\n");
    expect((await run("batch", "status", "by-http")).stdout).toContain("3 ended, 2 of them failed");
  } finally {
    await rm(here, { recursive: true });
  }
});

test("a batch goes on across connections that are cut, brings every result once, and runs nothing twice", async ({
  fleet,
  gateways,
}) => {
  await fleet.worker("worker-1", busybox);
  const gateway = await gateways.start({ BERTH_ARTIFACTS: join(fleet.workspaces, "../artifacts") });
  const proxy = new CuttingProxy(gateway.port);
  proxy.cutEvery = 5;
  await proxy.start();
  const here = await mkdtemp(join(tmpdir(), "berth-cli-"));
  const count = 40;
  await writeFile(join(here, "jobs.jsonl"), batchOf(count, 0.1));
  const env = { BERTH_URL: proxy.url, BERTH_KEY: adminKey };
  const args = ["batch", "run", "jobs.jsonl", "--id", "cut", "--out", "results.jsonl", "--in-flight", "8"];
  const run = new CliRun([...args, "--artifacts", "kept"], { env, cwd: here });
  try {
    await run.says("batch cut, 40 jobs", "stderr");
    expect(await run.end()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("40 of 40 jobs ended"),
    });
    expect(proxy.cuts, "connections that were cut").toBeGreaterThan(5);
    const lines = (await readFile(join(here, "results.jsonl"), "utf8")).trimEnd().split("\n");
    const indexes = lines.map((line) => JSON.parse(line).index).sort((a, b) => a - b);
    expect(indexes).toEqual(Array.from({ length: count }, (_, index) => index));
    const value = await fleet.client().tenant("acme").read("ran", { session: "look" });
    expect(
      (value.content ?? "")
        .trimEnd()
        .split("\n")
        .map(Number)
        .sort((a, b) => a - b),
    ).toEqual(indexes);
    for (const index of indexes)
      expect(await readFile(join(here, `kept/${index}/f${index}`), "utf8")).toBe("kept\n");
  } finally {
    await run.signal("SIGKILL");
    await proxy.stop();
    await rm(here, { recursive: true });
  }
});

test("a batch whose gateway stays away ends with the command that goes on with it, flags included", async ({
  fleet,
  gateways,
}) => {
  await fleet.worker("worker-1", busybox);
  const gateway = await gateways.start();
  const proxy = new CuttingProxy(gateway.port);
  await proxy.start();
  const here = await mkdtemp(join(tmpdir(), "berth-cli-"));
  await writeFile(join(here, "the jobs.jsonl"), batchOf(12, 0.3));
  const env = { BERTH_URL: proxy.url, BERTH_KEY: adminKey };
  const args = [
    "batch",
    "run",
    "the jobs.jsonl",
    "--id",
    "away",
    "--out",
    "results.jsonl",
    "--artifacts",
    "kept",
  ];
  const more = ["--in-flight", "4", "--patience", "1s"];
  const results = () => readFile(join(here, "results.jsonl"), "utf8").catch(() => "");
  try {
    const run = new CliRun([...args, ...more], { env, cwd: here });
    await expect.poll(results, { interval: 20 }).toContain("\n");
    await proxy.stop();
    const { code, stderr, stdout } = await run.end();
    expect(code).toBe(69);
    expect(stdout).toMatch(/\d+ of 12 jobs ended/);
    const [, resume] = /To run the rest: berth (.*)$/m.exec(stderr) ?? [];
    expect(resume).toBe(
      "batch run 'the jobs.jsonl' --id away --out results.jsonl --artifacts kept --in-flight 4 --patience 1s",
    );
    expect(stderr).toContain("gateway-unreachable");
    await proxy.start();
    expect((await runCli([...args, ...more], { env, cwd: here })).code).toBe(0);
    expect((await results()).trimEnd().split("\n")).toHaveLength(12);
  } finally {
    await proxy.stop();
    await rm(here, { recursive: true });
  }
});

/** Each job notes in the tenant's workspace that it ran, and keeps a file. */
function batchOf(count: number, seconds: number): string {
  const jobs = Array.from({ length: count }, (_, index) => ({
    tenant: "acme",
    session: `s${index % 4}`,
    request: {
      kind: "exec",
      command: `echo ${index} >> ran; sleep ${seconds}; echo kept > f${index}`,
      artifacts: [`f${index}`],
    },
  }));
  return jobs.map((job) => `${JSON.stringify(job)}\n`).join("");
}

test("the first key is made through Redis, and never shown again", async ({ redis, gateways }) => {
  const gateway = await gateways.start({ BERTH_ADMIN_KEY: "" });
  const made = await runCli(["key", "create", "ops", "--admin"], { env: { REDIS_URL: redis.url } });
  const token = made.stdout.trim();
  const listed = await runCli(["key", "ls", "--json"], { env: { BERTH_URL: gateway.url, BERTH_KEY: token } });
  const { keys } = JSON.parse(listed.stdout);
  expect(keys).toMatchObject([{ role: "admin", name: "ops" }]);
  expect(listed.stdout).not.toContain(token.split("_").at(-1));
  const without = async () => (await runCli(["key", "ls"], { env: { BERTH_URL: gateway.url } })).code;
  await expect.poll(without).toBe(78);
});

test("a tenant's key opens its tenant only, until it is revoked", async ({ fleet, gateways }) => {
  await fleet.worker("worker-1", busybox);
  const gateway = await gateways.start();
  const admin = { BERTH_URL: gateway.url, BERTH_KEY: adminKey };
  const create = ["key", "create", "acme's", "--tenant", "acme", "--profile", "net", "--pool", "gpu"];
  const early = await runCli(create, { env: admin });
  expect(early).toMatchObject({ code: 1, stderr: expect.stringContaining("berth tenant grant") });
  const grant = ["tenant", "grant", "acme", "--profile", "net", "--pool", "gpu", "--pool", "big"];
  expect((await runCli(grant, { env: { REDIS_URL: fleet.redis.url } })).stdout).toBe(
    "acme may use profiles default, net; pools default, big, gpu\n",
  );
  expect((await runCli(["tenant", "revoke", "acme", "--pool", "big"], { env: admin })).stdout).toBe(
    "acme may use profiles default, net; pools default, gpu\n",
  );
  const made = await runCli([...create, "--json"], { env: admin });
  const { token, key } = JSON.parse(made.stdout);
  const env = { BERTH_URL: gateway.url, BERTH_KEY: token };
  expect((await runCli(["exec", "acme", "--", "echo mine"], { env })).stdout).toBe("mine\n");
  expect((await runCli(["key", "ls"], { env: admin })).stdout).toMatch(/ acme +default,net +default,gpu /);
  const usage = await runCli(["tenant", "usage", "acme"], { env });
  expect(usage.stdout).toContain("profiles default, net; pools default, gpu");
  const foreign = await runCli(["exec", "globex", "--", "true"], { env });
  expect(foreign.code).toBe(1);
  expect(foreign.stderr).toContain("[forbidden]");
  const looked = await runCli(["doctor", "fleet", "--json"], { env });
  expect(JSON.parse(looked.stdout)).toMatchObject({ healthy: true, findings: [{ state: "warn" }] });
  expect((await runCli(["key", "revoke", key.id], { env: admin })).code).toBe(0);
  const after = async () => (await runCli(["exec", "acme", "--", "true"], { env })).code;
  await expect.poll(after).toBe(78);
});
