import { Berth } from "@berth/client";
import { describe, expect } from "vitest";
import { test } from "../support/redis.ts";

describe("a Redis that is full", () => {
  test("refuses new jobs as redis-full, which passes, and takes them when there is room again", async ({
    redis,
  }) => {
    const berth = new Berth({ redis: redis.url });
    const admin = redis.connect();
    const acme = berth.tenant("acme");
    await acme.exec("true").enqueued();
    await admin.config("SET", "maxmemory", "1mb");
    const full = { name: "Fault", code: "redis-full", retry: true };
    // Asked before it is added; added without asking, since there was room a moment ago; put in the schedule.
    await expect(acme.exec("true", {}, { id: "mine" }).enqueued()).rejects.toMatchObject(full);
    await expect(acme.exec("true").enqueued()).rejects.toMatchObject(full);
    await expect(acme.exec("true", {}, { delayMs: 60_000 }).enqueued()).rejects.toMatchObject(full);
    const large = "x".repeat(400 * 1024);
    await expect(acme.write("large", large).enqueued()).rejects.toMatchObject(full);
    await admin.config("SET", "maxmemory", "0");
    expect(await (await acme.exec("true", {}, { id: "mine" }).enqueued()).status()).toBe("not-started");
    await berth.close();
  });

  test("is waited for by a batch", async ({ redis }) => {
    const berth = new Berth({ redis: redis.url });
    const admin = redis.connect();
    await berth.tenant("acme").exec("true").enqueued();
    await admin.config("SET", "maxmemory", "1mb");
    const orders = [1, 2].map(() => ({
      tenant: "acme",
      request: { kind: "exec", command: "true" } as const,
    }));
    const batch = berth.batch(orders, { id: "full" });
    const reading = batch.results().next();
    const refusals = async () =>
      Number(/cmdstat_evalsha:.*failed_calls=(\d+)/.exec(await admin.info("commandstats"))?.[1]);
    const before = await refusals();
    await expect.poll(refusals).toBeGreaterThan(before + 2);
    expect(batch.progress().submitted).toBe(0);
    await admin.config("SET", "maxmemory", "0");
    await expect.poll(() => batch.progress().submitted).toBe(2);
    await batch.cancel();
    expect(await reading).toMatchObject({ value: { result: { outcome: { kind: "cancelled" } } } });
    await berth.close();
  });
});
