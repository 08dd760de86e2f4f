import {
  auditUnfinished,
  JobEvents,
  Leases,
  queueKeys,
  Renewals,
  Staging,
  submitJob,
  Wakes,
} from "@berth/ledger";
import {
  epoch as asEpoch,
  type Job,
  job as jobSchema,
  queuePrefix,
  redisKeys,
  sandboxKey,
  workerId,
} from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { FetchedJob, TenancyPorts } from "@berth/tenancy";
import { describe, expect } from "vitest";
import { systemClock } from "../../apps/worker/src/clock.ts";
import { readConfig } from "../../apps/worker/src/config.ts";
import { tenancyPorts } from "../../apps/worker/src/tenancy-ports.ts";
import { Turns } from "../../apps/worker/src/turns.ts";
import { ModelRig, modelKey } from "../../packages/tenancy/test/simulation/model-rig.ts";
import { Random } from "../../packages/tenancy/test/simulation/random.ts";
import { test } from "../support/redis.ts";

const leaseMs = 60_000;
const unused = undefined as never;
const done = { outcome: { kind: "exited", code: 0 }, value: {}, timing: { wallMs: 0, cpuMs: 0 } } as const;

interface Both<T> {
  readonly real: T;
  readonly model: T;
}

interface Holder extends Both<TenancyPorts> {
  readonly fetched: Both<FetchedJob>[];
}

/** One sandbox in Redis and in the simulation, to which the same is done. */
class Twins {
  readonly #redis: Redis;
  readonly #leases: Leases;
  readonly #wakes: Wakes;
  readonly #model = new ModelRig(leaseMs);
  readonly #random: Random;
  readonly #key: ReturnType<typeof sandboxKey.parse>;
  readonly #holders: Holder[] = [];
  readonly #jobs: Job[] = [];
  readonly #forgotten = new Set<string>();
  readonly answers: string[] = [];

  constructor(redis: Redis, seed: number) {
    this.#redis = redis;
    this.#leases = new Leases(redis);
    this.#wakes = new Wakes(redis, "twins");
    this.#random = new Random(seed);
    this.#key = sandboxKey.parse(`twin-${seed}`);
  }

  async step(): Promise<void> {
    const random = this.#random;
    // Mostly the holder, sometimes a former one.
    const holder = random.chance(0.75) ? this.#holders.at(-1) : this.#holders.at(-random.between(1, 3));
    const job = this.#jobs.length > 0 ? random.pick(this.#jobs.slice(-8)) : undefined;
    const dice = random.between(random.chance(0.2) ? 0 : 1, 19);
    if (!holder || dice === 0) return await this.#take();
    if (!job || dice <= 2) return await this.#add(job);
    if (dice <= 6) return await this.#next(holder);
    if (dice === 7) return await this.#active(holder);
    if (dice <= 9) return await this.#complete(holder);
    if (dice <= 12) return await this.#begin(holder, job);
    if (dice === 13) return this.#random.chance(0.3) ? await this.#forget() : await this.#cancel(job);
    if (dice === 14) return this.#random.chance(0.2) ? await this.#audit() : await this.#lease(holder);
    await this.#say(holder, job, dice);
  }

  async close(): Promise<void> {
    for (const { real } of this.#holders) await real.jobs.close();
    this.#wakes.stop();
  }

  async #take(): Promise<void> {
    const worker = workerId.parse(this.#random.pick(["worker-1", "worker-2"]));
    const taken = await this.#leases.take(this.#key, { worker, instance: worker }, leaseMs);
    const model = this.#model.take(worker);
    this.#same("take", taken.taken, model !== undefined);
    if (!taken.taken || !model) return;
    const { epoch, deadlineMs } = taken;
    const hold = (instance: string, untilMs?: number) =>
      this.#holders.push({
        real: this.#realPorts(instance, epoch, untilMs ?? deadlineMs),
        model: this.#model.ports(worker, {
          epoch: model.epoch,
          instance,
          deadlineMs: untilMs ?? model.deadlineMs,
        }),
        fetched: [],
      });
    // One with the same epoch and another instance; one that has not renewed in time, as far as it knows.
    if (this.#random.chance(0.3)) hold("impostor");
    hold(worker, this.#random.chance(0.3) ? -1 : undefined);
  }

  async #add(before: Job | undefined): Promise<void> {
    const isKnown = before && !this.#forgotten.has(before.id);
    const again = isKnown && before.attempt < 3 && this.#random.chance(0.6);
    const job = again
      ? { ...before, attempt: before.attempt + 1 }
      : jobSchema.parse({
          version: 1,
          id: `${this.#key}-${this.#jobs.length}`,
          tenant: this.#key,
          request: { kind: "exec", command: "true" },
        });
    // One whose end is known is not added again. The model adds what Redis added.
    if ((await submitJob(this.#redis, this.#key, job)) !== "known") this.#model.add(job);
    this.#jobs.push(job);
  }

  async #next(holder: Holder): Promise<void> {
    const take = this.#random.chance(0.5) ? `take-${this.answers.length}` : undefined;
    const behind: string[] = [];
    const next = ({ jobs }: TenancyPorts, onBehind = () => {}) =>
      jobs.next(0, { take: () => take, onBehind }).catch(() => "fenced" as const);
    const [real, model] = [
      await next(holder.real, () => behind.push("real")),
      await this.#model.passed(next(holder.model, () => behind.push("model"))),
    ];
    if (behind.length > 0) this.#same("behind", behind.includes("real"), behind.includes("model"));
    if (real === "fenced" || model === "fenced") {
      // Whether a stale holder looks at an empty queue or asks for its jobs depends on when a wake-up reached it.
      const isEmpty = (await this.#redis.exists(`${queuePrefix(this.#key)}:jobs:wait`)) === 0;
      if (isEmpty && (real === undefined || model === undefined)) return;
      return this.#same("next", real, model);
    }
    this.#same("next", shown(real), shown(model));
    if (real && model) holder.fetched.push({ real, model });
  }

  async #active(holder: Holder): Promise<void> {
    const [real, model] = await this.#both(holder, ({ jobs }) => jobs.active());
    this.#same("active", real.map(shown), model.map(shown));
    real.forEach((fetched, index) => {
      const twin = model[index];
      if (twin) holder.fetched.push({ real: fetched, model: twin });
    });
  }

  async #complete({ fetched }: Holder): Promise<void> {
    if (fetched.length === 0) return;
    const { real, model } = this.#random.pick(fetched);
    this.#same(
      "complete",
      await settled(real.complete()),
      await this.#model.passed(settled(model.complete())),
    );
  }

  async #begin(holder: Holder, { id, attempt }: Job): Promise<void> {
    const queuedId = attempt > 1 ? `${id}~${attempt}` : id;
    const [taken] = await this.#both(holder, ({ jobs }) => jobs.active());
    const known = this.#random.chance(0.8) ? taken.map((fetched) => fetched.queuedId) : [];
    const before = known.slice(0, Math.max(0, known.indexOf(queuedId)));
    const [real, model] = await this.#both(holder, ({ events }) =>
      events.begin(id, attempt, { queuedId, before }),
    );
    this.#same("begin", real, model);
  }

  async #cancel({ id, attempt }: Job): Promise<void> {
    if (!this.#random.chance(0.3) || this.#forgotten.has(id)) return;
    if (this.#random.chance(0.5)) {
      await this.#redis.hset(redisKeys.job(this.#key, id), "cancel", "1");
      this.#model.redis.events.requestCancellation(id);
      return;
    }
    await this.#redis.hset(redisKeys.job(this.#key, id), "key", this.#key);
    const queue = queueKeys(this.#key, id, attempt);
    const waiting = { key: this.#key, jobId: id, attempt, inbox: undefined, queue };
    const real = await new JobEvents(this.#redis).cancel(waiting, done);
    this.#same("cancel", real, this.#model.redis.events.cancel({ key: modelKey, jobId: id, attempt }));
  }

  /** A day passes: what Redis keeps of jobs that have ended is gone. */
  async #forget(): Promise<void> {
    for (const { id } of this.#jobs) {
      if ((await new JobEvents(this.#redis).progress(this.#key, id)).state !== "finished") continue;
      await this.#redis.del(redisKeys.events(this.#key, id), redisKeys.job(this.#key, id));
      this.#forgotten.add(id);
    }
    this.#model.redis.events.expire();
  }

  async #audit(): Promise<void> {
    const page = { from: 0, limit: 10_000, olderThanMs: 0 };
    const { vanished } = await auditUnfinished(this.#redis, page);
    const real = vanished.filter(({ key }) => key === this.#key).map(({ jobId }) => jobId);
    const ids = new Set(this.#jobs.map(({ id }) => id));
    const model = [...ids].filter((id) => this.#model.redis.events.auditOne(id) === "ended");
    this.#same("audit", real.length > 0 ? "ended" : "kept", model.length > 0 ? "ended" : "kept");
    expect(model.sort()).toEqual(real.sort());
  }

  async #lease(holder: Holder): Promise<void> {
    const onlyIfEmpty = this.#random.chance(0.8);
    const ask = this.#random.chance(0.7)
      ? ({ lease }: TenancyPorts) => lease.renew()
      : ({ lease }: TenancyPorts) => lease.release({ onlyIfEmpty });
    const [real, model] = await this.#both<string>(holder, ask);
    this.#same("lease", real, model);
  }

  async #say(holder: Holder, { id, attempt }: Job, dice: number): Promise<void> {
    const part = this.#random.between(0, 2);
    const takes = this.#random.chance(0.5) ? this.answers.map((_, step) => `take-${step}`) : undefined;
    const ended = { attempt, outcome: { kind: "exited", code: 1 }, atMs: 0, dueAtMs: 0 } as const;
    const [real, model] = await this.#both(holder, async ({ events }) => {
      if (dice <= 16) return await events.output(id, part, [{ stream: "stdout", bytes: Buffer.from("x") }]);
      if (dice === 17) return (await events.progress(id, attempt)).state;
      if (dice === 18) return await events.retrying(id, ended);
      if (part === 0) return await events.unbegin(id, attempt, takes);
      return await events.finished({ id, attempt }, done, { leaves: part === 1 });
    });
    this.#same("say", real, model);
    const recorded = await new JobEvents(this.#redis).read(this.#key, id, "");
    const types = recorded.map(({ event }) => (event.type === "stdout" ? "output" : event.type));
    this.#same(
      "events",
      types,
      this.#model.redis.events.left(id).map(({ type }) => type),
    );
  }

  async #both<T>(holder: Holder, ask: (ports: TenancyPorts) => Promise<T>): Promise<[T, T]> {
    return [await ask(holder.real), await this.#model.passed(ask(holder.model))];
  }

  #same(what: string, real: unknown, model: unknown): void {
    expect({ step: this.answers.length, what, answer: model }).toEqual({
      step: this.answers.length,
      what,
      answer: real,
    });
    this.answers.push(`${what} ${JSON.stringify(real)}`);
  }

  #realPorts(instance: string, epoch: number, deadlineMs: number): TenancyPorts {
    const read = readConfig({ BERTH_LEASE_MS: String(leaseMs) });
    if ("problems" in read) throw new Error("a configuration of the test's own");
    const parts = {
      config: read.config,
      instance,
      redis: this.#redis,
      leases: this.#leases,
      renewals: new Renewals(this.#leases, instance, leaseMs),
      events: new JobEvents(this.#redis),
      staging: new Staging(this.#redis),
      wakes: this.#wakes,
      ...{
        driver: unused,
        egress: unused,
        policy: unused,
        secrets: unused,
        artifacts: unused,
        parking: unused,
      },
      scheduler: { later: () => unused, hurry: () => unused },
      approvalWebhook: unused,
      turns: new Turns(1),
      clock: systemClock,
      report: () => {},
    };
    return tenancyPorts(parts, this.#key, { epoch: asEpoch.parse(epoch), deadlineMs }, unused);
  }
}

function shown(fetched: FetchedJob | undefined) {
  if (!fetched) return undefined;
  const { id, queuedId, attempt, isBegun = false } = fetched;
  return { id, queuedId, attempt, isBegun };
}

async function settled(promise: Promise<void>): Promise<"done" | "refused"> {
  return await promise.then(
    () => "done",
    () => "refused",
  );
}

describe("simulation's Redis", () => {
  test("the simulation's Redis gives the same answers as Redis to any sequence of calls", async ({
    redis,
  }) => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= 12; seed++) {
      const twins = new Twins(redis.connect(), seed);
      for (let step = 0; step < 250; step++) await twins.step();
      for (const answer of twins.answers) seen.add(answer);
      await twins.close();
    }
    const wanted = ["begun", "fenced", "finished-before", "cancelled", "out-of-turn", "late"];
    expect(wanted.filter((answer) => !seen.has(`begin "${answer}"`))).toEqual([]);
    const ends = ["ended", "finished-before", "begun"].map((answer) => `cancel "${answer}"`);
    expect([...seen]).toEqual(
      expect.arrayContaining([
        ...ends,
        'audit "ended"',
        'audit "kept"',
        'complete "done"',
        'complete "refused"',
        "behind true",
        "say true",
        "say false",
        'next "fenced"',
      ]),
    );
  });
});
