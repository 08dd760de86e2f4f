import { readdir } from "node:fs/promises";
import type { Tenant } from "@berth/client";
import { redisKeys, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";

describe("sandbox that is to be ended", () => {
  test("a sandbox can be stopped and destroyed with invalid layers, revoked grants, a missing profile or mode off", async ({
    fleet,
  }) => {
    const invalid = { version: 1, atMs: 1, by: "newer", settings: { teleport: true } };
    await fleet.redis.connect().hset(redisKeys.profiles, "tenant.invalid", JSON.stringify(invalid));
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const live = (layer: string, settings: object) => berth.profiles.set(layer, settings);
    await live("profile.net", { images: [busybox.BERTH_IMAGE] });
    const mountable = { data: { source: "/nowhere/data", target: "/mnt/data", access: "ro" } };
    const becomes: Record<string, () => Promise<unknown>> = {
      ungranted: () => live("tenant.ungranted", { image: "no-such-image:1" }),
      revoked: async () => {
        await live("tenant.revoked", { profile: "net" });
        await berth.tenant("revoked").revoke({ profiles: ["net"] });
      },
      unmountable: async () => {
        await berth.tenant("unmountable").grant({ profiles: ["data"] });
        await live("profile.data", { mountable, mounts: ["data"] });
        await live("tenant.unmountable", { profile: "data" });
      },
      imageless: async () => {
        await berth.tenant("imageless").grant({ profiles: ["imageless"] });
        await live("profile.imageless", { image: "localhost:1/no-such-image:1" });
        await live("tenant.imageless", { profile: "imageless" });
      },
      off: () => live("tenant.off", { mode: "off" }),
    };
    const used = Object.keys(becomes);
    const names = [...used, "invalid"];
    await berth.tenant("revoked").grant({ profiles: ["net"] });
    for (const name of used) {
      expect((await berth.tenant(name).exec("echo kept > kept")).outcome).toEqual({
        kind: "exited",
        code: 0,
      });
      await becomes[name]?.();
    }
    const refusals = await Promise.all(
      names.map(async (name) => {
        await expect.poll(async () => (await berth.tenant(name).exec("true")).outcome.kind).toBe("refused");
        return name;
      }),
    );
    expect(refusals).toEqual(names);
    const kinds = async (end: (tenant: Tenant) => PromiseLike<{ outcome: { kind: string } }>) =>
      Object.fromEntries(
        await Promise.all(names.map(async (name) => [name, (await end(berth.tenant(name))).outcome])),
      );
    const done = Object.fromEntries(names.map((name) => [name, { kind: "done" }]));
    expect(await kinds((tenant) => tenant.stop())).toEqual(done);
    for (const name of used) expect(await readdir(fleet.workspaces)).toContain(name);
    expect(await kinds((tenant) => tenant.destroy())).toEqual(done);
    for (const name of names) expect(await readdir(fleet.workspaces)).not.toContain(name);
  });
});

describe("sandbox that is destroyed", () => {
  test("a sandbox that is destroyed loses what any of its conversations persisted, and no other sandbox does", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    const talks = [{ session: "chat" }, { session: "chat", agent: "writer" }, {}];
    for (const talk of talks) {
      await acme.write("plan.md", "small", { persist: true, ...talk });
      await acme.write("large.bin", "x".repeat(100 * 1024), { persist: true, ...talk });
    }
    const elsewhere = { scope: "session", session: "chat" } as const;
    const other = await acme.write("plan.md", "other", { persist: true, ...elsewhere });
    const kept = await acme.exec("echo report > report", { artifacts: ["report"] });
    expect((await acme.destroy()).outcome).toEqual({ kind: "done" });
    for (const talk of talks) {
      expect((await acme.read("plan.md", talk)).outcome).toMatchObject({ code: "not-found" });
      const value = await acme.list("", talk);
      expect([value.entries, value.persisted ?? []]).toEqual([[], []]);
    }
    expect((await acme.read("plan.md", elsewhere)).content).toBe("other");
    const redis = fleet.redis.connect();
    const left = await redis.keys(redisKeys.artifact("*"));
    const ids = [other, kept].flatMap(({ artifacts }) => artifacts?.map(({ id }) => id) ?? []);
    expect(left.sort()).toEqual(ids.map((id) => redisKeys.artifact(id)).sort());
    expect(await redis.exists(redisKeys.conversations(sandboxKey.parse("acme")))).toBe(0);
    const usedBytes = await redis.hget(redisKeys.artifactUsage, "acme");
    expect(Number(usedBytes)).toBe("other".length + "report\n".length);
    expect((await acme.destroy()).outcome, "again, with nothing there").toEqual({ kind: "done" });
  });

  test("a destroyed sandbox is gone despite odd permissions, odd names and background processes of its tenant", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const attempts = {
      locked: "chmod 000 /workspace",
      "keeps-locking": "(while :; do chmod 000 /workspace; done) > /dev/null 2>&1 &",
      "keeps-writing": "(while :; do echo > $RANDOM$RANDOM; done) > /dev/null 2>&1 &",
      "odd-names": `touch "$(printf 'a\\nb')" "$(printf '\\377')" ...`,
    };
    const outcomes = Object.entries(attempts).map(async ([name, command]) => {
      const tenant = berth.tenant(name);
      await tenant.exec("mkdir -p deep/er; echo precious > deep/er/file; chmod 000 deep");
      expect((await tenant.exec(command)).outcome).toEqual({ kind: "exited", code: 0 });
      return [name, (await tenant.destroy()).outcome.kind];
    });
    expect(await Promise.all(outcomes)).toEqual(Object.keys(attempts).map((name) => [name, "done"]));
    const left = await readdir(fleet.workspaces);
    expect(left.filter((name) => name in attempts)).toEqual([]);
  });
});
