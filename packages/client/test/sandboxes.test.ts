import { redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { Berth } from "../src/berth.ts";

/** How often Redis was asked so, since it started. */
function timesAsked(stats: string, command: string): number {
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

describe("sandboxes of one tenant", () => {
  test("the sandboxes of one tenant are found, in every scope, without reading those of others", async ({
    redis,
  }) => {
    const berth = new Berth({ redis: redis.url });
    const commands = redis.connect();
    const acme = berth.tenant("acme");
    await acme.exec("true").enqueued();
    await acme.exec("true", { scope: "session", session: "s1" }).enqueued();
    await acme.exec("true", { scope: "agent", agent: "coder", delayMs: 60_000 }).enqueued();
    await acme.exec("true", { scope: "shared" }).enqueued();
    await berth.tenant("acme-2").exec("true").enqueued();
    // Used after all of acme's, so that a listing comes past these first.
    const others = Array.from({ length: 5_000 }, (_, index) => [Date.now() + 60_000, `other-${index}`]);
    await commands.zadd(redisKeys.sandboxes, ...others.flat());
    const before = await commands.info("commandstats");
    const found = await berth.sandboxes({ tenant: "acme" });
    const after = await commands.info("commandstats");
    expect(found.map(({ key }) => key).sort()).toEqual(["acme", "acme.a.coder", "acme.s.s1"]);
    expect(found).toEqual(found.toSorted((a, b) => b.lastUsedMs - a.lastUsedMs));
    expect(found.find(({ key }) => key === "acme")).toMatchObject({ tenant: "acme", unfinished: 1 });
    const asked = timesAsked(after, "zrevrange") - timesAsked(before, "zrevrange");
    expect(asked, "pages of an index").toBe(1);
    expect(await berth.sandboxes({ tenant: "acme", limit: 2 })).toHaveLength(2);
    expect(await berth.sandboxes({ tenant: "unused" })).toEqual([]);
    expect((await berth.sandboxes({ tenant: "shared" })).map(({ key }) => key)).toEqual(["shared.all"]);
    expect(await berth.sandboxes({ limit: 600 })).toHaveLength(600);
    await berth.close();
  });
});
