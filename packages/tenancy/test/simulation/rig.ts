import { isRepeatable, type JobInput, job as jobSchema, sandboxKey } from "@berth/protocol";
import { Tenancy } from "../../src/tenancy.ts";
import type { TenancyEnd, TenancyOptions } from "../../src/tenancy-options.ts";
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

const leaseMs = 1_000;
const key = "ash";

/** A job that becomes a dead letter. Only such a job leaves its queue in a step of its own. */
export const deadLetter = [
  { retry: { attempts: 1, backoffMs: 100, jitter: 0 } },
  { commands: [{ runMs: 100, code: 1, chunks: [] }] },
] as const;

export interface HeldSandbox {
  readonly tenancy: Tenancy;
  readonly process: SimProcess;
  readonly turns: SimTurns;
  readonly host: Host;
  /** How it ended, once it has. */
  end: TenancyEnd | undefined;
}

/** One sandbox, and workers that hold it one after the other. The test controls time and faults. */
export class Rig {
  readonly time = new VirtualTime();
  readonly trace = new Trace(this.time);
  readonly weather = new PlannedWeather();
  readonly rules = new Rules({ time: this.time, trace: this.trace, leaseMs, parallel: 2, turns: 2 });
  readonly redis = new SimRedis(this.time, this.rules);
  readonly #random = new Random(1);

  get queue() {
    return this.redis.queue(key);
  }

  add(id: string, job: Partial<JobInput> = {}, plan: Partial<SimJob> = {}): void {
    const input = { version: 1, id, tenant: key, request: { kind: "exec", command: "true" }, ...job };
    const parsed = jobSchema.parse(input);
    const repeatable = isRepeatable(parsed.request, parsed.idempotent);
    const commands = parsed.request.kind === "destroy" ? [] : [{ runMs: 100, code: 0, chunks: [] }];
    const base = { id, key, session: parsed.session, data: parsed, job: parsed, commands, repeatable };
    const added: SimJob = { ...base, artifact: false, breaks: false, ...plan };
    this.redis.add({ job: added, attempt: 1 });
  }

  /** Takes the sandbox for a worker of that name, on a host of its own. `answeredAfterMs`: how long ago the worker sent the request. */
  hold(
    worker: string,
    { answeredAfterMs = 0, ...options }: Partial<TenancyOptions> & { answeredAfterMs?: number } = {},
  ): HeldSandbox {
    const { time, trace, weather, rules, redis } = this;
    const turns = new SimTurns(2);
    const host = new Host({ time, rules, leaseMs });
    const random = this.#random;
    const process = new SimProcess(time, random);
    const connection = new Connection({
      ...{ name: worker, time, process, weather, trace, timeoutMs: leaseMs },
      onRefused: () => redis.leases.refusals++,
    });
    const takenAtMs = process.clock.now() - answeredAfterMs;
    const taken = redis.leases.take(key, { worker, instance: worker }, leaseMs);
    if (!taken) throw new Error(`${worker} cannot take ${key}`);
    const { epoch, deadlineMs } = taken;
    const settled = {
      key: sandboxKey.parse(key),
      epoch,
      leaseMs,
      takenAtMs,
      parallel: 2,
      parkedMost: 16,
      idleMs: 500,
    };
    const tenancy = new Tenancy(
      {
        ...settled,
        maxAgeMs: 0,
        onNoSandbox: "wait",
        closesFirst: false,
        parks: false,
        removeOnStop: true,
        ...options,
      },
      simPorts({
        ...{
          time,
          random,
          trace,
          weather,
          rules,
          redis,
          turns,
          process,
          connection,
          key,
          epoch,
          leaseMs,
          worker,
          deadlineMs,
          instance: worker,
        },
        host,
        token: `${worker}-${epoch}`,
      }),
    );
    const held: HeldSandbox = { tenancy, process, turns, host, end: undefined };
    void tenancy.run().then((end) => {
      held.end = end;
    });
    return held;
  }

  /** The types of a job's events; for the end, the kind of its outcome. */
  said(id: string): string[] {
    return this.redis.events
      .of(id)
      .map((event) => (event.type === "finished" ? event.result.outcome.kind : event.type));
  }

  /** Jobs in the order in which their commands started. */
  get started(): readonly string[] {
    return this.rules.started;
  }
}
