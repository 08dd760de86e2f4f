import type { Job } from "@berth/protocol";
import type { TenancyPorts } from "../../src/tenancy-ports.ts";
import { Connection } from "./connection.ts";
import { Host } from "./containers.ts";
import { PlannedWeather } from "./planned-weather.ts";
import { Random } from "./random.ts";
import { Rules } from "./rules.ts";
import type { SimJob } from "./sim-job.ts";
import { simPorts } from "./sim-ports.ts";
import { SimProcess } from "./sim-process.ts";
import { SimRedis } from "./sim-redis.ts";
import { SimTurns } from "./sim-turns.ts";
import { Trace } from "./trace.ts";
import { VirtualTime } from "./virtual-time.ts";

export const modelKey = "ash";

/** The simulation's Redis without a fleet, for a test that makes the calls of tenancies itself. */
export class ModelRig {
  readonly #time = new VirtualTime();
  readonly #trace = new Trace(this.#time);
  readonly #random = new Random(1);
  readonly #leaseMs: number;
  readonly #rules: Rules;
  readonly redis: SimRedis;

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs;
    const limits = { parallel: 1, turns: 1 };
    this.#rules = new Rules({ time: this.#time, trace: this.#trace, leaseMs, ...limits });
    this.redis = new SimRedis(this.#time, this.#rules);
  }

  take(worker: string): { readonly epoch: number; readonly deadlineMs: number } | undefined {
    return this.redis.leases.take(modelKey, { worker, instance: worker }, this.#leaseMs);
  }

  /** The ports of a worker's process that may wrongly believe that it holds the sandbox. */
  ports(
    worker: string,
    holding: { readonly epoch: number; readonly instance: string; readonly deadlineMs: number },
  ): TenancyPorts {
    const shared = { time: this.#time, random: this.#random, trace: this.#trace, rules: this.#rules };
    const process = new SimProcess(this.#time, this.#random);
    const weather = new PlannedWeather();
    const timeoutMs = this.#leaseMs;
    return simPorts({
      ...shared,
      ...holding,
      ...{ redis: this.redis, process, weather, worker, key: modelKey, leaseMs: this.#leaseMs },
      connection: new Connection({ ...shared, name: worker, process, weather, timeoutMs }),
      turns: new SimTurns(1),
      host: new Host({ time: this.#time, rules: this.#rules, leaseMs: this.#leaseMs }),
      token: `${holding.instance}-${holding.epoch}`,
    });
  }

  add(job: Job): void {
    const { id, session, attempt } = job;
    const known: SimJob = {
      ...{ id, key: modelKey, session, data: job, job, commands: [] },
      ...{ artifact: false, breaks: false, repeatable: false },
    };
    if (this.redis.queue(modelKey).add({ job: known, attempt }))
      this.redis.events.added(modelKey, id, attempt);
  }

  /** Lets time pass until the call is answered. */
  async passed<T>(asked: Promise<T>): Promise<T> {
    const [answer] = await Promise.all([asked, this.#time.pass(100)]);
    return answer;
  }
}
