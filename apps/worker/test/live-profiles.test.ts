import { ProfileStore } from "@berth/ledger";
import { type LayerId, layers, redisKeys, sandboxProfile, tenantId } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { LiveProfiles } from "../src/live-profiles.ts";
import { Policy } from "../src/policy.ts";

const [acme, globex] = [tenantId.parse("acme"), tenantId.parse("globex")];
const by = { by: "test" };
const ofPids = (pids: number) => ({ limits: { pids } });

describe("worker's copy of the live layers", () => {
  test("a worker's copy of the live layers has those from before its start and later changes, even one whose message was lost", async ({
    redis,
  }) => {
    const store = new ProfileStore(redis.connect());
    const policy = new Policy({ base: sandboxProfile.parse({}), files: new Map() });
    const heard: LayerId[] = [];
    const live = new LiveProfiles({ store, policy, onChange: ({ layer }) => heard.push(layer) });
    const pids = () => [acme, globex].map((tenant) => policy.resolve({ tenant }).profile.limits.pids);
    await store.set(layers.tenant(acme), ofPids(64), by);
    await live.start();
    try {
      expect(pids()).toEqual([64, 256]);
      live.layerChanged(await store.set(layers.tenant(globex), ofPids(65), by));
      await expect.poll(pids).toEqual([64, 65]);
      expect(heard).toEqual(["tenant.globex"]);
      await store.set(layers.tenant(acme), null, by);
      await store.set(layers.tenant(globex), ofPids(66), by);
      live.lookAgain();
      await expect.poll(pids).toEqual([256, 66]);
    } finally {
      live.stop();
    }
  });

  test("a worker's copy of the live layers refuses the jobs of a layer that a newer version wrote, and no others", async ({
    redis,
  }) => {
    const connection = redis.connect();
    const policy = new Policy({ base: sandboxProfile.parse({}), files: new Map() });
    const entry = { version: 1, atMs: 1, by: "newer", settings: { teleport: true } };
    await connection.hset(redisKeys.profiles, layers.tenant(acme), JSON.stringify(entry));
    const live = new LiveProfiles({ store: new ProfileStore(connection), policy, onChange: () => {} });
    await live.start();
    live.stop();
    expect(() => policy.resolve({ tenant: acme })).toThrow(/tenant.acme is invalid: .*teleport/);
    expect(policy.resolve({ tenant: globex }).profile.limits.pids).toBe(256);
  });
});
