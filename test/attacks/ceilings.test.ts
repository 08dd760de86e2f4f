import { Berth } from "@berth/client";
import { BatchStore, DeadLetters, Leases, ProfileStore, Staging } from "@berth/ledger";
import {
  type CeilingChanges,
  job,
  layerId,
  redisKeys,
  sandboxKey,
  sandboxKeyOf,
  stagedAboveBytes,
  workerId,
} from "@berth/protocol";
import { describe, expect } from "vitest";
import { test as withRedis } from "../support/redis.ts";

const test = withRedis.extend<{ berth: Berth }>({
  berth: async ({ redis }, use) => {
    const berth = new Berth({ redis: redis.url });
    await use(berth);
    await berth.close();
  },
});

const evil = { tenant: "evil", request: { kind: "exec", command: "true" } } as const;
const full = (ceiling: string, limit: number) => ({
  code: "tenant-full",
  context: { tenant: "evil", ceiling, limit },
});

async function give(berth: Berth, ceilings: CeilingChanges): Promise<void> {
  await berth.profiles.set("tenant.evil", { ceilings });
}

/** How many of the orders were accepted. Every other must be refused at that ceiling. */
async function accepted(tries: readonly Promise<unknown>[], ceiling: string, limit: number): Promise<number> {
  const ends = await Promise.allSettled(tries);
  for (const end of ends)
    if (end.status === "rejected") expect(end.reason).toMatchObject(full(ceiling, limit));
  return ends.filter(({ status }) => status === "fulfilled").length;
}

describe("tenant that submits as much as it can", () => {
  test("no number of producers, sessions and delays takes a tenant past its ceiling of jobs", async ({
    berth,
    redis,
  }) => {
    await give(berth, { waitingJobs: 20 });
    const producers = Array.from({ length: 4 }, () => new Berth({ redis: redis.url }));
    const submit = (producer: Berth, at: number) =>
      producer
        .submit({
          ...evil,
          ...(at % 2 === 0 ? { scope: "session", session: `s${at}` } : {}),
          ...(at % 3 === 0 ? { delayMs: 3_600_000 } : {}),
        })
        .enqueued();
    try {
      // Which of the others are accepted is a race.
      const delayed = await submit(berth, 3);
      const tries = producers.flatMap((one) => Array.from({ length: 15 }, (_, at) => submit(one, at)));
      expect(await accepted(tries, "waitingJobs", 20)).toBe(19);
      const { ceilings } = await berth.tenant("evil").usage();
      expect(ceilings).toContainEqual({ ceiling: "waitingJobs", used: 20, limit: 20 });
      // Others are not held up, and what has ended makes room.
      await berth.submit({ ...evil, tenant: "acme" }).enqueued();
      await delayed.cancel();
      const again = Array.from({ length: 3 }, () => berth.submit(evil).enqueued());
      expect(await accepted(again, "waitingJobs", 20)).toBe(1);
    } finally {
      await Promise.all(producers.map((one) => one.close()));
    }
  });

  test("new session names, also of delayed jobs, do not take a tenant past its ceiling of sandboxes", async ({
    berth,
  }) => {
    await give(berth, { sandboxes: 5 });
    const order = (session: string, delayMs?: number) =>
      berth
        .submit({ ...evil, scope: "session", session, ...(delayMs === undefined ? {} : { delayMs }) })
        .enqueued();
    const tries = Array.from({ length: 12 }, (_, at) =>
      order(`s${at}`, at % 2 === 0 ? 3_600_000 : undefined),
    );
    expect(await accepted(tries, "sandboxes", 5)).toBe(5);
    // The sandboxes that are there take more.
    const [known] = await berth.sandboxes({ tenant: "evil" });
    await order(known?.key.split(".")[2] ?? "");
  });

  test("a tenant does not pass its daily ceilings by ended or waiting jobs, and learns when the day ends", async ({
    berth,
    redis,
  }) => {
    const today = Math.floor(Date.now() / 86_400_000);
    const use = (day: number, parts: string) =>
      redis.connect().hset(redisKeys.usage("evil", "evil"), String(day), parts);
    await use(today - 1, "1000 0 9000000000 0 0 9000 9000");
    await use(today, "7 0 5000000 0 0 600 400");
    const submit = () => berth.submit(evil).enqueued();
    await give(berth, { dailyCpuSeconds: 5 });
    const end = new Date((today + 1) * 86_400_000).toISOString();
    await expect(submit()).rejects.toMatchObject({
      ...full("dailyCpuSeconds", 5),
      message: `evil has 5 cpu seconds used today, and its ceiling dailyCpuSeconds is 5: submit it after the day's end, at ${end}`,
    });
    await give(berth, { dailyBytes: 1_100 });
    await expect(submit()).rejects.toMatchObject(full("dailyBytes", 1_100));
    await give(berth, { dailyCpuSeconds: 6, dailyBytes: 1_000_000, dailyJobs: 10 });
    const tries = Array.from({ length: 8 }, (_, at) =>
      berth.submit({ ...evil, ...(at % 2 === 0 ? { delayMs: 3_600_000 } : {}) }).enqueued(),
    );
    expect(await accepted(tries, "dailyJobs", 10)).toBe(3);
    const { ceilings } = await berth.tenant("evil").usage();
    expect(ceilings).toContainEqual({ ceiling: "dailyJobs", used: 10, limit: 10 });
  });

  test("staged and delayed requests do not take a tenant past its ceiling of bytes", async ({
    berth,
    redis,
  }) => {
    const limit = 4 * stagedAboveBytes;
    await give(berth, { waitingBytes: limit });
    const commands = redis.connect();
    const staging = new Staging(commands);
    const large = (id: string) =>
      job.parse({
        ...evil,
        version: 1,
        id,
        request: { kind: "write", path: "f", content: "x".repeat(stagedAboveBytes + 1) },
      });
    const put = (id: string) => staging.put(sandboxKeyOf(large(id)), large(id));
    expect(await accepted(["a", "b", "c", "d", "e", "f"].map(put), "waitingBytes", limit)).toBe(3);
    await put("a");
    const { id: _, version: __, ...order } = large("x");
    const later = () => berth.submit({ ...order, delayMs: 3_600_000 }).enqueued();
    expect(await accepted([later()], "waitingBytes", limit)).toBe(0);
    // The one that was put beside the queue is accepted.
    await berth.submit({ ...order, id: "a", delayMs: 3_600_000 }).enqueued();
    const bytes = Number(await commands.get(redisKeys.waitingBytes("evil", "evil")));
    expect(bytes).toBeGreaterThan(stagedAboveBytes);
    const more = Array.from({ length: 6 }, () => berth.submit(order).enqueued());
    expect(await accepted(more, "waitingBytes", limit)).toBe(0);
    const half = {
      ...evil,
      request: { kind: "write", path: "f", content: "x".repeat(stagedAboveBytes / 2) },
    } as const;
    const small = [berth.submit(half).enqueued(), berth.submit(half).enqueued()];
    expect(await accepted(small, "waitingBytes", limit)).toBe(1);
    // What was refused leaves nothing beside the queue.
    const left = await commands.keys("berth:{evil}:staged:*");
    expect(left).toHaveLength(3);
  });

  test("a tenant's held sandboxes do not pass its ceiling on any number of workers, dead ones not counted", async ({
    berth,
    redis,
  }) => {
    await give(berth, { heldSandboxes: 3 });
    const commands = redis.connect();
    const leases = new Leases(commands);
    const take = (session: string, lengthMs = 60_000) =>
      leases.take(
        sandboxKey.parse(`evil.s.${session}`),
        { worker: workerId.parse(`w${session}`), instance: `i${session}` },
        lengthMs,
      );
    const taken = await Promise.all(Array.from({ length: 10 }, (_, at) => take(`s${at}`)));
    expect(taken.filter((one) => one.taken)).toHaveLength(3);
    expect(taken.filter((one) => !one.taken && one.why === "tenant-full")).toHaveLength(7);
    const index = taken.findIndex((one) => one.taken);
    const held = taken[index];
    if (!held?.taken) throw new Error("none was taken");
    const first = sandboxKey.parse(`evil.s.s${index}`);
    const holding = { epoch: held.epoch, instance: `is${index}` };
    await leases.release(first, holding, { onlyIfEmpty: false, queueKeys: [] });
    expect(await take("next", 50)).toMatchObject({ taken: true });
    // Its worker dies: the lease runs out.
    await expect.poll(async () => (await take("other")).taken, { timeout: 20_000 }).toBe(true);
    expect(await take("more")).toMatchObject({ taken: false, why: "tenant-full" });
  });
});

describe("tenant that makes as many things as it can", () => {
  test("a tenant has no more schedules than its ceiling, and removing one makes room", async ({
    berth,
    redis,
  }) => {
    await give(berth, { schedules: 3 });
    const put = (id: string) => berth.schedules.put({ id, everyMs: 3_600_000, order: evil });
    const tries = Array.from({ length: 12 }, (_, at) => put(`s${at % 6}`));
    expect(await accepted(tries, "schedules", 3)).toBeGreaterThanOrEqual(3);
    const own = await berth.schedules.list({ tenant: "evil" });
    expect(own).toHaveLength(3);
    // One that is there may be replaced, also at the ceiling.
    await put(own[0]?.id ?? "");
    await berth.schedules.put({ id: "theirs", everyMs: 3_600_000, order: { ...evil, tenant: "acme" } });
    const moved = berth.schedules.put({ id: "theirs", everyMs: 3_600_000, order: evil });
    await expect(moved, "nor by renaming the tenant of another").rejects.toMatchObject(full("schedules", 3));
    await berth.schedules.remove(own[0]?.id ?? "");
    await put("fresh");
    expect(await redis.connect().scard(redisKeys.schedulesOf("evil"))).toBe(3);
    expect(await berth.schedules.list({ tenant: "acme" })).toMatchObject([{ id: "theirs" }]);
  });

  test("a tenant has no more open batches than its ceiling, and other tenants' lists lose none", async ({
    berth,
    redis,
  }) => {
    await give(berth, { batches: 2 });
    const commands = redis.connect();
    const batches = new BatchStore(commands);
    await batches.open("bat_theirs", "acme", undefined);
    const tries = Array.from({ length: 6 }, (_, at) => batches.open(`bat_${at}`, "evil", undefined));
    expect(await accepted(tries, "batches", 2)).toBe(2);
    const [one, two] = await batches.list("evil", 10);
    await batches.noteUploaded(one?.id ?? "", 0);
    await batches.open("bat_next", "evil", undefined);
    // One whose record has expired does not count.
    await commands.del(redisKeys.batch(two?.id ?? ""));
    await batches.open("bat_last", "evil", undefined);
    expect((await batches.list("acme", 10)).map(({ id }) => id)).toEqual(["bat_theirs"]);
    expect(await batches.list("evil", 10)).toHaveLength(3);
  });

  test("a tenant that makes as many things as it can pushes out only its own dead letters", async ({
    berth,
    redis,
  }) => {
    await give(berth, { deadLetters: 3 });
    const letters = new DeadLetters(redis.connect());
    const addLetter = (tenant: string, jobId: string) =>
      letters.add({
        ...{ jobId, sandboxKey: tenant, reason: "lost", outcome: { kind: "lost", message: "x" } },
        ...{ atMs: Date.now(), worker: "w1", job: { ...evil, tenant } },
      });
    try {
      await addLetter("acme", "theirs");
      for (let at = 0; at < 8; at++) await addLetter("evil", `own-${at}`);
      const queue = await redis.connect().keys("berth:queue{queue}:dead:d-*");
      expect(queue.map((key) => key.split(":d-")[1]).sort()).toEqual(["own-5", "own-6", "own-7", "theirs"]);
    } finally {
      await letters.close();
    }
  });
});

describe("ceilings of a tenant", () => {
  test("a tenant's ceilings replace the fleet's, and a layer with an impossible value is refused whole", async ({
    berth,
    redis,
  }) => {
    await berth.profiles.set("fleet", { ceilings: { waitingJobs: 1 } });
    await give(berth, { waitingJobs: 2 });
    const evils = Array.from({ length: 3 }, () => berth.submit(evil).enqueued());
    expect(await accepted(evils, "waitingJobs", 2)).toBe(2);
    await berth.submit({ ...evil, tenant: "acme" }).enqueued();
    const second = berth.submit({ ...evil, tenant: "acme" }).enqueued();
    await expect(second).rejects.toMatchObject({ code: "tenant-full", context: { limit: 1 } });
    await expect(berth.profiles.set("tenant.evil", { ceilings: { waitingJobs: -1 } })).rejects.toMatchObject({
      code: "invalid-profile",
    });
    const store = new ProfileStore(redis.connect());
    const inAgent = store.set(layerId.parse("agent.evil.x"), { ceilings: { waitingJobs: 9 } }, { by: "t" });
    await expect(inAgent).rejects.toMatchObject({ code: "invalid-profile" });
    // Removed, the fleet's hold again.
    await berth.profiles.set("tenant.evil", null);
    await expect(berth.submit(evil).enqueued()).rejects.toMatchObject(full("waitingJobs", 1));
  });

  test("a job cannot change its tenant's ceilings", async ({ berth }) => {
    const settings = { ceilings: { waitingJobs: 9 } } as object;
    await expect(berth.submit({ ...evil, settings }).enqueued()).rejects.toMatchObject({
      code: "invalid-job",
    });
  });
});
