import { redisKeys, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { Berth } from "../src/berth.ts";

describe("the jobs of a fleet", () => {
  test("the jobs of a tenant are listed without reading those of others", async ({ redis }) => {
    const client = redis.connect();
    const berth = new Berth({ redis: redis.url });
    const filler = client.pipeline();
    for (let at = 0; at < 10_600; at++) filler.zadd(redisKeys.unfinished, at, `job-${at}`);
    await filler.exec();
    const order = { tenant: "acme", request: { kind: "exec", command: "true" } } as const;
    for (const id of ["own", "own-2"]) await berth.submit({ ...order, id }).enqueued();
    await berth.submit({ ...order, id: "in-shared", scope: "shared" }).enqueued();
    await client.config("RESETSTAT");
    const found = await berth.jobs.list({ tenant: "acme" });
    expect(found.map(({ id }) => id)).toEqual(["own", "own-2", "in-shared"]);
    expect(/cmdstat_get:calls=(\d+)/.exec(await client.info("commandstats"))?.[1]).toBe("3");
    for (const { id } of found) await berth.cancel(id);
    expect(await client.exists(redisKeys.unfinishedOf("acme", "acme"))).toBe(0);
    expect(await client.exists(redisKeys.unfinishedOf("shared", "acme"))).toBe(0);
    await berth.close();
  });

  test("a session with few jobs makes a list read at most the oldest ten thousand of the fleet", async ({
    redis,
  }) => {
    const client = redis.connect();
    const filler = client.pipeline();
    for (let at = 0; at < 10_600; at++) filler.zadd(redisKeys.unfinished, at, `job-${at}`);
    for (const at of [9_999, 10_000]) {
      filler.set(redisKeys.sandboxOf(`job-${at}`), "acme");
      filler.hset(redisKeys.job(sandboxKey.parse("acme"), `job-${at}`), {
        key: "acme",
        tenant: "acme",
        session: "main",
        kind: "exec",
        at,
      });
    }
    await filler.exec();
    const berth = new Berth({ redis: redis.url });
    // Its first call looks at what kind of Redis it is.
    expect(await berth.jobs.find("unknown")).toBeUndefined();
    await client.config("RESETSTAT");
    const found = await berth.jobs.list({ session: "main" });
    await berth.close();
    expect(found.map(({ id }) => id)).toEqual(["job-9999"]);
    const stats = await client.info("commandstats");
    expect(/cmdstat_get:calls=(\d+)/.exec(stats)?.[1]).toBe("10000");
  });

  test("jobs are listed by tenant, session and state, the oldest first, and found by id", async ({
    redis,
  }) => {
    const berth = new Berth({ redis: redis.url });
    const submit = (id: string, more: object) =>
      berth.submit({ id, tenant: "acme", request: { kind: "exec", command: "true" }, ...more }).enqueued();
    await submit("first", {});
    await submit("later", { delayMs: 60_000 });
    await submit("second", { session: "s" });
    await submit("other", { tenant: "globex" });
    const ids = async (query?: object) => (await berth.jobs.list(query)).map(({ id }) => id);
    expect(await ids()).toEqual(["first", "second", "other"]);
    expect(await ids({ tenant: "acme" })).toEqual(["first", "second"]);
    expect(await ids({ session: "s" })).toEqual(["second"]);
    expect(await ids({ state: "waiting", limit: 1 })).toEqual(["first"]);
    expect(await ids({ state: "running" })).toEqual([]);
    await expect(berth.jobs.list({ limit: 0 })).rejects.toMatchObject({ code: "invalid-argument" });
    const about = { tenant: "acme", session: "main", kind: "exec", sandbox: "acme" };
    const acceptedAtMs = expect.any(Number);
    expect(await berth.jobs.find("first")).toEqual({ id: "first", ...about, state: "waiting", acceptedAtMs });
    expect(await berth.jobs.find("later")).toMatchObject({ ...about, state: "scheduled" });
    await berth.cancel("first");
    expect(await berth.jobs.find("first")).toMatchObject({
      state: "finished",
      result: { outcome: { kind: "cancelled" } },
    });
    expect(await ids({ tenant: "acme" })).toEqual(["second"]);
    expect(await berth.jobs.find("unheard-of")).toBeUndefined();
    await berth.close();
  });

  test("a detached submission carries no inbox, and the given trace", async ({ redis }) => {
    const berth = new Berth({ redis: redis.url });
    const trace = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" };
    const order = { tenant: "acme", request: { kind: "exec", command: "true" } } as const;
    const detached = await berth.submit({ ...order, id: "alone" }, { detached: true, trace }).enqueued();
    const awaited = await berth.submit({ ...order, id: "awaited" }).enqueued();
    const again = await berth.submit({ ...order, id: "alone" }).enqueued();
    expect([detached.isNew, awaited.isNew, again.isNew]).toEqual([true, true, false]);
    const data = async (id: string) =>
      JSON.parse((await redis.connect().hget(`berth:{acme}:jobs:${id}`, "data")) ?? "{}");
    expect(await data("alone")).toMatchObject({ trace });
    expect(await data("alone")).not.toHaveProperty("inbox");
    expect(await data("awaited")).toHaveProperty("inbox");
    const given = new AbortController();
    const waiting = berth.submit({ ...order, id: "awaited" }, { signal: given.signal });
    await waiting.enqueued();
    given.abort();
    await expect(waiting).rejects.toMatchObject({ code: "aborted" });
    await berth.close();
  });
});
