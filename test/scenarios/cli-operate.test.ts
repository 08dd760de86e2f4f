import { expect } from "vitest";
import { CliRun, runCli } from "../support/cli.ts";
import { busybox, test } from "../support/fleet.ts";

async function json(args: string[], env: Record<string, string>) {
  const { code, stdout, stderr } = await runCli([...args, "--json"], { env });
  expect({ code, stderr }, args.join(" ")).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

test("berth ps, why and cancel work on a waiting job while no worker is alive", async ({ fleet }) => {
  const env = { REDIS_URL: fleet.redis.url };
  const job = await fleet.client().tenant("acme").exec("true", { id: "waits" }).enqueued();
  const { jobs } = await json(["ps", "acme"], env);
  expect(jobs).toMatchObject([
    { id: job.id, tenant: "acme", session: "main", kind: "exec", sandbox: "acme", state: "waiting" },
  ]);
  expect((await json(["ps", "globex"], env)).jobs).toEqual([]);
  const why = await runCli(["why", job.id], { env });
  expect(why.stdout).toMatch(/^waiting: no worker of the pool default is there\n/);
  expect((await runCli(["why", "unknown"], { env })).code).toBe(1);
  const cancelled = await runCli(["cancel", job.id, "unknown"], { env });
  expect(cancelled).toMatchObject({ code: 1, stdout: `${job.id} was asked to end\nunknown is not known\n` });
  await fleet.worker("worker-1", busybox);
  expect((await job.result).outcome.kind).toBe("cancelled");
});

test("Ctrl-C cancels a command that no worker has taken, and its job ends without a worker", async ({
  fleet,
}) => {
  const run = new CliRun(["exec", "acme", "--id", "stuck", "--", "true"], {
    env: { REDIS_URL: fleet.redis.url },
  });
  await expect.poll(() => fleet.client().job("stuck")).toBeDefined();
  const ended = await run.signal("SIGINT");
  expect(ended.code).toBe(130);
  expect(ended.stderr).toContain("cancelled: by request, before it began");
});

test("berth fleet shows workers and sandboxes, and a drained worker is gone from it", async ({ fleet }) => {
  const env = { REDIS_URL: fleet.redis.url };
  await fleet.worker("worker-1", busybox);
  const second = await fleet.worker("worker-2", busybox);
  await fleet.client().tenant("acme").exec("true");
  const shown = await json(["fleet"], env);
  expect(shown.workers.map(({ id }: { id: string }) => id).sort()).toEqual(["worker-1", "worker-2"]);
  expect(shown.sandboxes).toMatchObject([{ key: "acme", tenant: "acme", paused: false }]);
  expect(shown.scale).toMatchObject({ workers: 2, unfinishedJobs: 0 });
  expect((await runCli(["fleet"], { env })).stdout).toContain("2 workers");
  expect((await runCli(["drain", "worker-2", "--wait"], { env })).stdout).toBe("worker-2 has left\n");
  expect(await second.ended()).toBe(0);
  expect((await runCli(["drain", "worker-2"], { env })).code).toBe(1);
});

test("berth tenant pauses, resumes, shows and destroys a tenant", async ({ fleet }) => {
  const env = { REDIS_URL: fleet.redis.url };
  await fleet.worker("worker-1", busybox);
  const acme = fleet.client().tenant("acme");
  await acme.write("file", "x");
  expect((await runCli(["tenant", "pause", "acme"], { env })).code).toBe(0);
  expect(await json(["tenant", "usage", "acme"], env)).toMatchObject({
    tenant: "acme",
    paused: true,
    unfinished: 0,
    profiles: ["default"],
    pools: ["default"],
  });
  const waiting = acme.read("file");
  expect(await (await waiting.enqueued()).status()).toBe("waiting");
  expect((await runCli(["tenant", "resume", "acme"], { env })).code).toBe(0);
  expect((await waiting).content).toBe("x");
  const unsure = await runCli(["tenant", "destroy", "acme"], { env });
  expect(unsure).toMatchObject({ code: 64, stdout: "" });
  expect(unsure.stderr).toContain("--yes");
  expect(await json(["tenant", "destroy", "acme", "--yes"], env)).toEqual({ tenant: "acme", destroyed: 1 });
  expect((await acme.list()).entries).toEqual([]);
});

test("berth schedule put runs a command again and again until berth schedule rm", async ({ fleet }) => {
  const env = { REDIS_URL: fleet.redis.url };
  await fleet.worker("worker-1", busybox);
  const put = ["schedule", "put", "often", "--tenant", "acme", "--every", "300ms"];
  expect((await runCli([...put, "--", "echo tick >> ticks"], { env })).code).toBe(0);
  const ticks = async () => (await fleet.client().tenant("acme").read("ticks")).content ?? "";
  await expect.poll(ticks).toContain("tick\ntick\n");
  expect((await runCli(["schedule", "rm", "often"], { env })).code).toBe(0);
  expect((await runCli(["schedule", "rm", "often"], { env })).code).toBe(1);
});

test("berth schedule lists, pauses and resumes a schedule, and refuses an invalid one", async ({ redis }) => {
  const env = { REDIS_URL: redis.url };
  const cron = (fields: string) => [
    "schedule",
    "put",
    "nightly",
    "--tenant",
    "acme",
    "--cron",
    fields,
    "--",
    "ls",
  ];
  expect((await runCli(cron("0 3 * * *"), { env })).stdout).toMatch(
    /^nightly: 0 3 \* \* \* UTC; next 20\d\d-/,
  );
  expect((await runCli(["schedule", "pause", "nightly"], { env })).code).toBe(0);
  const { schedules } = await json(["schedule", "ls"], env);
  expect(schedules).toMatchObject([{ id: "nightly", paused: true, order: { tenant: "acme" } }]);
  expect((await runCli(["schedule", "resume", "nightly"], { env })).code).toBe(0);
  const wrong = await runCli(cron("61 3 * * *"), { env });
  expect(wrong.code).toBe(64);
  expect(wrong.stderr).toContain("invalid schedule");
});

test("berth dead lists a failed job, runs it again, and removes it", async ({ fleet }) => {
  const env = { REDIS_URL: fleet.redis.url };
  await fleet.worker("worker-1", busybox);
  const retry = { attempts: 2, backoffMs: 10 };
  await fleet.client().tenant("acme").exec("echo x >> tries; exit 1", { id: "doomed", retry });
  const letters = async () => (await json(["dead", "ls"], env)).letters;
  await expect.poll(letters).toMatchObject([{ jobId: "doomed", sandboxKey: "acme" }]);
  const again = await runCli(["dead", "redrive", "doomed"], { env });
  expect(again).toMatchObject({ code: 0, stdout: "doomed-redrive-1\n" });
  await expect.poll(letters).toMatchObject([{ jobId: "doomed-redrive-1" }]);
  expect((await runCli(["dead", "rm", "doomed-redrive-1"], { env })).code).toBe(0);
  expect(await letters()).toEqual([]);
  const missing = await runCli(["dead", "redrive", "doomed"], { env });
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining("berth dead ls") });
});
