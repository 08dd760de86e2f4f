import { Enqueuer, JobEvents, Leases, Renewals, Staging, Wakes } from "@berth/ledger";
import { type Epoch, execLimits, type JobResult, job, sandboxKey, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { type SandboxPort, Tenancy } from "@berth/tenancy";
import { systemClock } from "../../apps/worker/src/clock.ts";
import { readConfig } from "../../apps/worker/src/config.ts";
import { tenancyPorts } from "../../apps/worker/src/tenancy-ports.ts";
import { Turns } from "../../apps/worker/src/turns.ts";

/** A method that only a real sandbox or a failed job would call. */
const unused = undefined as never;

/** A sandbox whose calls return at once, so that only queue, lease and streams are measured. */
const doesNothing: SandboxPort = {
  isOpen: () => true,
  open: async () => ({
    limits: execLimits.parse({}),
    run: async (): Promise<JobResult> => ({
      outcome: { kind: "done" },
      value: {},
      timing: { wallMs: 0, cpuMs: 0 },
    }),
    workspace: async () => {
      throw new TypeError("no job of this bench is about a workspace");
    },
    stop: async () => {},
    destroy: async () => {},
    done: () => {},
  }),
  close: async () => {},
};

const instance = "bench";
const read = readConfig({});
if ("problems" in read) throw new Error("a configuration of the bench's own");
const { config } = read;

/** A worker in this process whose tenancies do nothing for their jobs, on the real Redis. */
export class NullWorker implements Disposable {
  readonly #redis: Redis;
  readonly #leases: Leases;
  readonly #renewals: Renewals;
  readonly #wakes: Wakes;
  readonly #turns = new Turns(1_000);

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#leases = new Leases(redis);
    this.#renewals = new Renewals(this.#leases, instance, config.leaseMs);
    this.#wakes = new Wakes(redis, instance);
  }

  async hold(
    tenant: string,
    {
      parallel = 4,
      onFinished = () => {},
    }: { readonly parallel?: number; readonly onFinished?: () => void } = {},
  ): Promise<{ readonly tenancy: Tenancy; readonly running: Promise<unknown> }> {
    const key = sandboxKey.parse(tenant);
    const { leaseMs } = config;
    const taken = await this.#leases.take(key, { worker: workerId.parse("bench"), instance }, leaseMs);
    if (!taken.taken) throw new Error("the bench's own sandbox could not be taken");
    const ports = tenancyPorts(
      {
        config,
        instance,
        redis: this.#redis,
        leases: this.#leases,
        renewals: this.#renewals,
        events: new JobEvents(this.#redis),
        staging: new Staging(this.#redis),
        wakes: this.#wakes,
        driver: unused,
        egress: unused,
        policy: unused,
        secrets: unused,
        artifacts: unused,
        scheduler: { later: () => unused, hurry: () => unused },
        approvalWebhook: unused,
        turns: this.#turns,
        parking: unused,
        clock: systemClock,
        report: ({ event }) => {
          if (event === "job.finished") onFinished();
        },
      },
      key,
      { epoch: taken.epoch as Epoch, deadlineMs: taken.deadlineMs },
      unused,
    );
    const limits = { leaseMs, parallel, parkedMost: 128, idleMs: 0, maxAgeMs: 0 } as const;
    const tenancy = new Tenancy(
      {
        key,
        epoch: taken.epoch,
        takenAtMs: systemClock.now(),
        ...limits,
        onNoSandbox: "refuse",
        closesFirst: false,
        parks: false,
        removeOnStop: true,
      },
      // No profiles here, so every tenant has the same weight.
      { ...ports, turns: this.#turns.of({ tenant, weight: () => 1 }), sandbox: doesNothing },
    );
    return { tenancy, running: tenancy.run() };
  }

  [Symbol.dispose](): void {
    this.#wakes.stop();
  }
}

/** Enqueues jobs that do nothing, over `sessions` sessions. */
export async function enqueueNothing(
  redis: Redis,
  tenant: string,
  jobs: number,
  sessions: number,
): Promise<void> {
  const enqueuer = new Enqueuer(redis);
  const request = { kind: "stat", path: "" } as const;
  await Promise.all(
    Array.from({ length: jobs }, (_, index) => {
      const id = `${tenant}-${index}`;
      return enqueuer.enqueue(
        job.parse({ version: 1, id, tenant, session: `s${index % sessions}`, request }),
      );
    }),
  );
  await enqueuer.close();
}
