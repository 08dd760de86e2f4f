import { fleetQueuePrefix } from "@berth/protocol";
import { Queue } from "bullmq";
import { describe, expect } from "vitest";
import { type TestFleet, test } from "../support/fleet.ts";

const brisk = { BERTH_LEASE_MS: "3000", BERTH_SWEEP_MS: "500" };

async function lettersOf(fleet: TestFleet, count = 1) {
  const { deadLetters } = fleet.client();
  await expect.poll(() => deadLetters.list()).toHaveLength(count);
  return await deadLetters.list();
}

describe("job whose attempts ran out", () => {
  test("a job out of attempts is a dead letter; re-driven it runs anew, and its first end stays", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1");
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    const retry = { attempts: 2, backoffMs: 100 };
    const job = await acme.exec("cat fixed", { id: "job-a", retry }).enqueued();
    const first = await job.result;
    expect(first.outcome).toEqual({ kind: "exited", code: 1 });
    const [letter] = await lettersOf(fleet);
    expect(letter).toMatchObject({
      jobId: "job-a",
      reason: "retries-exhausted",
      outcome: first.outcome,
      sandboxKey: "acme",
      worker: "worker-1",
      job: { id: "job-a", attempt: 2 },
    });
    await acme.write("fixed", "yes");
    const again = await berth.deadLetters.redrive("job-a");
    expect(again).toBe("job-a-redrive-1");
    expect((await (await berth.job(again))?.result)?.value.stdout).toBe("yes");
    expect(await (await berth.job("job-a"))?.result).toEqual(first);
    expect(await berth.deadLetters.list()).toEqual([]);
  });
});

describe("job that cannot be read", () => {
  test("a job that cannot be read is a dead letter that cannot be driven again, and can be removed", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1");
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    await acme.exec("true");
    const queue = new Queue("jobs", { connection: fleet.redis.connect() as never, prefix: "berth:{acme}" });
    await queue.add("exec", { version: 9, id: "poison" }, { jobId: "poison" });
    const [letter] = await lettersOf(fleet);
    expect(letter).toMatchObject({ jobId: "poison", reason: "unreadable", job: { version: 9 } });
    await expect(berth.deadLetters.redrive("poison")).rejects.toMatchObject({
      code: "not-redrivable",
      context: { reason: "unreadable" },
    });
    expect(await berth.deadLetters.remove("poison")).toBe(true);
    expect(await berth.deadLetters.list()).toEqual([]);
    expect((await acme.exec("echo fine")).stdout).toBe("fine\n");
    await queue.close();
  });
});

describe("job that was lost, or that our own machinery refused", { timeout: 120_000 }, () => {
  test("a job that was lost or failed by a fault is a dead letter, and runs again only when re-driven", async ({
    fleet,
  }) => {
    const first = await fleet.worker("worker-1", brisk);
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    const refused = await berth.tenant("other").exec("true", { id: "job-b", profile: "no-such" });
    expect(refused.outcome).toMatchObject({ kind: "refused", code: "not-granted" });
    const command = "echo ran >> ledger; echo up; [ $(wc -l < ledger) -ge 2 ] || sleep 60";
    const job = await acme.exec(command, { id: "job-a" }).enqueued();
    for await (const event of job.events()) if (event.type === "stdout") break;
    first.signal("SIGKILL");
    await fleet.worker("worker-2", brisk);
    expect((await job.result).outcome).toMatchObject({ kind: "lost" });
    const letters = await lettersOf(fleet, 2);
    expect(letters.map(({ jobId, reason }) => [jobId, reason])).toEqual([
      ["job-a", "lost"],
      ["job-b", "fault"],
    ]);
    expect((await acme.exec("cat ledger")).stdout).toBe("ran\n");
    const again = await berth.job(await berth.deadLetters.redrive("job-a"));
    expect((await again?.result)?.outcome).toEqual({ kind: "exited", code: 0 });
    expect((await acme.exec("cat ledger")).stdout).toBe("ran\nran\n");
  });
});

describe("dashboard's retry button", () => {
  test("a dashboard's retry button drives a dead letter again", async ({ fleet }) => {
    await fleet.worker("worker-1");
    const berth = fleet.client();
    await berth.tenant("acme").exec("cat fixed", { id: "job-a", retry: { attempts: 1 } });
    await lettersOf(fleet);
    await berth.tenant("acme").write("fixed", "yes");
    const queue = new Queue("dead", { connection: fleet.redis.connect() as never, prefix: fleetQueuePrefix });
    const [failed] = await queue.getFailed();
    expect(failed?.failedReason).toBe("retries-exhausted: exited with code 1");
    await failed?.retry();
    const redriven = () => berth.job("job-a-redrive-1");
    await expect.poll(redriven).toBeDefined();
    expect((await (await redriven())?.result)?.value.stdout).toBe("yes");
    await queue.close();
  });
});
