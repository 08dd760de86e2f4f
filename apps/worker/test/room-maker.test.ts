import { Leases, Offers, type OfferTarget, submitJob } from "@berth/ledger";
import { job, type SandboxKey, sandboxKey, tenantId, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { systemClock } from "../src/clock.ts";
import { type HeldTenancy, RoomMaker } from "../src/room-maker.ts";

const target: OfferTarget = { pool: "default", home: undefined };
const long = 1_000_000;

/** A worker whose slots are all held, since long ago. A sandbox whose key has "idle" in it is idle. */
class FullWorker {
  readonly yielded: string[] = [];
  readonly #held = new Map<SandboxKey, HeldTenancy>();
  readonly #leases: Leases;
  readonly #id: string;
  readonly maker: RoomMaker;
  /** Of another worker's slots. */
  freeElsewhere = 0;
  laterMs = 0;

  constructor(redis: Redis, id: string) {
    this.#id = id;
    this.#leases = new Leases(redis);
    this.maker = new RoomMaker({
      ...{ redis, instance: id, offers: new Offers(redis), leases: this.#leases, targets: [target] },
      ...{ held: this.#held, freeSlots: () => 0, freeElsewhere: async () => this.freeElsewhere },
      ...{ quantumMs: 0, clock: { ...systemClock, now: () => systemClock.now() + this.laterMs } },
    });
  }

  async hold(...names: readonly string[]): Promise<void> {
    const now = systemClock.now();
    for (const [index, name] of names.entries()) {
      const key = sandboxKey.parse(name);
      await this.#leases.take(key, { worker: workerId.parse(this.#id), instance: this.#id }, 60_000);
      const { yielded } = this;
      let yielding = false;
      const tenancy = {
        key,
        idleSinceMs: name.includes("idle") ? now - 1_000 : undefined,
        get yielding() {
          return yielding;
        },
        yield: () => {
          yielding = true;
          yielded.push(name);
        },
      };
      this.#held.set(key, { tenancy, sinceMs: now - long + index });
    }
  }
}

async function offer(redis: Redis, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await offerWithJob(redis, `waits-${index}`);
}

async function offerWithJob(redis: Redis, tenant: string): Promise<void> {
  const key = sandboxKey.parse(tenant);
  const request = { kind: "exec", command: "true" };
  await submitJob(redis, key, job.parse({ version: 1, id: `job-of-${tenant}`, tenant, request }));
  await new Offers(redis).add(key, target);
}

test("exactly as many sandboxes yield as offers wait, the idle first, then those of the tenant that holds the most", async ({
  redis,
}) => {
  const commands = redis.connect();
  const worker = new FullWorker(commands, "worker-1");
  // The sandboxes of the small tenants are held for longer.
  await worker.hold("small", "other", "flood.s-0", "flood.s-1", "flood.s-2", "flood.s-3", "idle");
  await offer(commands, 3);
  await worker.maker.look();
  expect(worker.yielded).toEqual(["idle"]);
  await worker.maker.look();
  expect(worker.yielded).toEqual(["idle", "flood.s-0", "flood.s-1"]);
  await worker.maker.look();
  expect(worker.yielded).toHaveLength(3);
});

test("a tenant yields down to what the others hold, then all yield in turn", async ({ redis }) => {
  const commands = redis.connect();
  const worker = new FullWorker(commands, "worker-1");
  await worker.hold("small", "flood.s-0", "flood.s-1", "flood.s-2");
  await offer(commands, 3);
  await worker.maker.look();
  await worker.maker.look();
  expect(worker.yielded).toEqual(["flood.s-0", "flood.s-1", "small"]);
});

test("of two workers the one with sandboxes of the tenant that holds the most in the fleet makes room", async ({
  redis,
}) => {
  const commands = redis.connect();
  const [first, second] = [new FullWorker(commands, "worker-1"), new FullWorker(commands, "worker-2")];
  await first.hold("small", "other", "flood.s-0");
  await second.hold("flood.s-1", "flood.s-2", "third");
  await offer(commands, 2);
  for (let look = 0; look < 3; look++) for (const { maker } of [first, second]) await maker.look();
  // It holds three: two of them yield, wherever they are.
  const yielded = [...first.yielded, ...second.yielded];
  expect(yielded).toHaveLength(2);
  expect(yielded.every((name) => name.startsWith("flood."))).toBe(true);
});

test("a worker with small tenants alone leaves it to another to make room", async ({ redis }) => {
  const commands = redis.connect();
  const [first, second] = [new FullWorker(commands, "worker-1"), new FullWorker(commands, "worker-2")];
  await first.hold("small", "other", "third");
  await second.hold("flood.s-0", "flood.s-1", "flood.s-2");
  await offer(commands, 2);
  for (let look = 0; look < 3; look++) for (const { maker } of [first, second]) await maker.look();
  expect(first.yielded).toEqual([]);
  expect(second.yielded).toEqual(["flood.s-0", "flood.s-1"]);
});

test("no sandbox yields for an offer that another worker has a free slot for, until that worker has left it waiting for long", async ({
  redis,
}) => {
  const commands = redis.connect();
  const worker = new FullWorker(commands, "worker-1");
  worker.freeElsewhere = 2;
  await worker.hold("idle-1", "idle-2", "idle-3", "busy");
  await offer(commands, 3);
  for (let look = 0; look < 3; look++) await worker.maker.look();
  expect(worker.yielded).toEqual(["idle-1"]);
  worker.laterMs = 4_000;
  await worker.maker.look();
  expect(worker.yielded).toEqual(["idle-1"]);
  worker.laterMs = 6_000;
  await worker.maker.look();
  expect(worker.yielded).toEqual(["idle-1", "idle-2", "idle-3"]);
});

test("no sandbox yields for the offer of a sandbox that has a holder already, and the offer is removed", async ({
  redis,
}) => {
  const commands = redis.connect();
  const [worker, other] = [new FullWorker(commands, "worker-1"), new FullWorker(commands, "worker-2")];
  await worker.hold("idle-1", "idle-2");
  await offerWithJob(commands, "taken");
  await other.hold("taken");
  await worker.maker.look();
  expect(worker.yielded).toEqual([]);
  expect(await new Offers(commands).waiting([target])).toBe(0);
  await offerWithJob(commands, "waits");
  await worker.maker.look();
  expect(worker.yielded).toEqual(["idle-1"]);
});

test("what a dead worker held does not count", async ({ redis }) => {
  const commands = redis.connect();
  const leases = new Leases(commands);
  const dead = { worker: workerId.parse("dead"), instance: "dead" };
  for (let index = 0; index < 5; index++)
    await leases.take(sandboxKey.parse(`small.s-${index}`), dead, index < 3 ? 1 : 60_000);
  const gone = () => leases.lapsed(10).then(() => leases.heldCounts([tenantId.parse("small")]));
  await expect.poll(gone).toEqual(new Map([["small", 2]]));
});
