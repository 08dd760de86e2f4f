import { redisKeys, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";

describe("a sandbox that is destroyed", () => {
  test("loses what any of its conversations persisted, and no other sandbox does", async ({ fleet }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    const talks = [{ session: "chat" }, { session: "chat", agent: "writer" }, {}];
    for (const talk of talks) {
      await acme.write("plan.md", "small", { persist: true }, talk);
      await acme.write("large.bin", "x".repeat(100 * 1024), { persist: true }, talk);
    }
    const elsewhere = { scope: "session", session: "chat" } as const;
    const other = await acme.write("plan.md", "other", { persist: true }, elsewhere);
    const kept = await acme.exec("echo report > report", { artifacts: ["report"] });
    expect((await acme.destroy()).outcome).toEqual({ kind: "done" });
    for (const talk of talks) {
      expect((await acme.read("plan.md", {}, talk)).outcome).toMatchObject({ code: "not-found" });
      const { value } = await acme.list("", {}, talk);
      expect([value.entries, value.persisted ?? []]).toEqual([[], []]);
    }
    expect((await acme.read("plan.md", {}, elsewhere)).value.content).toBe("other");
    const redis = fleet.redis.connect();
    const left = await redis.keys("berth:artifact:*");
    const ids = [other, kept].flatMap(({ value }) => value.artifacts?.map(({ id }) => id) ?? []);
    expect(left.sort()).toEqual(ids.map((id) => redisKeys.artifact(id)).sort());
    expect(await redis.exists(redisKeys.conversations(sandboxKey.parse("acme")))).toBe(0);
    const usedBytes = await redis.hget(redisKeys.artifactUsage, "acme");
    expect(Number(usedBytes)).toBe("other".length + "report\n".length);
    expect((await acme.destroy()).outcome, "again, with nothing there").toEqual({ kind: "done" });
  });
});
