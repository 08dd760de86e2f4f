import { Fault, isFault } from "@berth/protocol";
import type { EventsPort, FetchedJob, JobsPort, TenancyPorts, TurnsPort } from "../../src/tenancy-ports.ts";
import type { Connection } from "./connection.ts";
import { type SandboxModelOptions, sandboxModel } from "./sandbox-model.ts";
import { type Entry, entryId } from "./sim-job.ts";
import type { SimRedis } from "./sim-redis.ts";
import type { Trace } from "./trace.ts";

export interface SimPortsOptions extends Omit<SandboxModelOptions, "jobOf"> {
  readonly redis: SimRedis;
  readonly connection: Connection;
  readonly turns: TurnsPort;
  readonly trace: Trace;
  readonly leaseMs: number;
  readonly token: string;
  readonly instance: string;
  /** Of the lease as it was taken. */
  readonly deadlineMs: number;
}

/** What `apps/worker` hands a tenancy, over a simulated Redis and containers. */
export function simPorts(options: SimPortsOptions): TenancyPorts {
  const { redis, connection, key, epoch, instance, leaseMs, process, turns, trace, worker } = options;
  const { leases } = redis;
  const holding = { epoch, instance };
  let { deadlineMs } = options;
  return {
    clock: process.clock,
    turns,
    report: (event) => trace.note(worker, event.event, JSON.stringify({ ...event, event: undefined })),
    lease: {
      renew: async () => {
        options.rules.progress.asksToRenew(key, epoch);
        try {
          const renewed = await connection.script("renew", () => leases.renew(key, holding, leaseMs));
          if (renewed.answer !== "lost") deadlineMs = renewed.deadlineMs;
          return renewed.answer;
        } catch (error) {
          if (!isFault(error, "redis-refused")) throw error;
          options.rules.refusedToRenew(key, epoch);
          return "refused";
        }
      },
      release: ({ onlyIfEmpty }) =>
        connection.script("release", () => leases.release(key, holding, redis.queue(key).left, onlyIfEmpty)),
    },
    placement: { startFailed: async () => "nowhere" },
    jobs: jobsPort(options, () => deadlineMs),
    events: eventsPort(options, () => deadlineMs),
    later: {
      retry: (next, dueAtMs) =>
        connection.bull("retry", () => redis.schedule(entryOf(redis, key, next.id, next.attempt), dueAtMs)),
      addDeadLetter: (jobId) => connection.bull("addDeadLetter", () => void redis.deadLetters.add(jobId)),
    },
    sandbox: sandboxModel({ ...options, jobOf: (jobId) => begunEntry(redis, key, jobId) }),
  };
}

function entryOf(redis: SimRedis, key: string, jobId: string, attempt: number): Entry {
  return { job: redis.queue(key).entry(jobId).job, attempt };
}

function begunEntry(redis: SimRedis, key: string, jobId: string): Entry {
  return entryOf(redis, key, jobId, redis.events.lastBegun(jobId));
}

function jobsPort(options: SimPortsOptions, deadlineMs: () => number): JobsPort {
  const { redis, connection, weather, trace, worker, key, epoch, instance, token, process, random } = options;
  const queue = redis.queue(key);
  const holding = { key, epoch, instance };
  const closing = Promise.withResolvers<void>();
  let ahead: string[] = [];
  /** The first of those, if it began when it was taken. */
  let begun: string | undefined;
  let drained = false;
  let closed = false;
  return {
    next: async (waitMs, atOnce) => {
      if (ahead.length === 0 && drained) {
        await Promise.race([closing.promise, waited(waitMs)]);
        if (!closed) drained = await connection.bull("look", () => queue.wait.length === 0);
      }
      if (ahead.length === 0 && !drained && !closed) {
        const take = atOnce?.take();
        const beginning = take === undefined ? undefined : { take, notAfterMs: deadlineMs() };
        const { ids, fate } = await connection.script("fetch", () =>
          redis.events.take(holding, token, beginning),
        );
        ahead = ids;
        begun = fate === "begun" ? ids[0] : undefined;
        if (fate === "behind") atOnce?.onBehind();
        drained = queue.wait.length === 0;
      }
      const id = closed && ahead[0] !== begun ? undefined : ahead.shift();
      return id === undefined ? undefined : { ...held(id), isBegun: id === begun };
    },
    nextBeside: async (sessions) => {
      const next = closed ? undefined : ahead.shift();
      if (next !== undefined || closed) return next === undefined ? undefined : held(next);
      const waiting = await connection.bull("peek", () => queue.wait.slice());
      const id = waiting.find((one) => !sessions.has(queue.entry(one).job.session));
      if (id === undefined) return undefined;
      trace.note(worker, "picks", id);
      const picked = await connection.script(`pick ${id}`, () => queue.pick(id, token, holds()));
      return picked ? held(id) : undefined;
    },
    active: async () => {
      ahead = [];
      return (await connection.bull("active", () => queue.active.slice())).map(held);
    },
    wake: () => connection.bull("wake", () => queue.marker.set()),
    close: async () => {
      closed = true;
      closing.resolve();
      await process.clock.sleep(random.between(1, 20));
    },
  };

  function waited(ms: number): Promise<void> {
    if (!weather.hangs()) return queue.marker.wait(process, ms);
    trace.note(worker, "hangs", key);
    options.rules.progress.stuck(key, epoch);
    return new Promise(() => {});
  }

  function holds(): boolean {
    return redis.leases.holds(key, { epoch, instance });
  }

  function held(id: string): FetchedJob {
    const { job, attempt } = queue.entry(id);
    return {
      id: job.id,
      queuedId: id,
      attempt,
      load: async () => {
        if (job.staged) await connection.script(`load ${id}`, () => undefined);
        if (job.staged === "gone") throw new Fault("payload-missing", { jobId: job.id, detail: "simulated" });
        return job.job ? { ...job.job, attempt } : job.data;
      },
      complete: () => connection.script(`complete ${id}`, () => queue.complete(id, token, holds())),
    };
  }
}

function eventsPort(
  { redis, connection, trace, key, epoch, instance, bug }: SimPortsOptions,
  deadlineMs: () => number,
): EventsPort {
  const { events } = redis;
  const of = (jobId: string, attempt = 0) => ({ key, epoch, instance, jobId, attempt });
  return {
    begin: (jobId, attempt, position) => {
      const notAfterMs = deadlineMs();
      return connection.script(`begin ${jobId}`, () => {
        const answer = events.begin({ ...of(jobId, attempt), ...position, notAfterMs });
        if (answer !== "begun") trace.note("redis", `begin:${answer}`, jobId);
        return answer;
      });
    },
    unbegin: (jobId, attempt, takes) =>
      connection.script(`unbegin ${jobId}`, () => events.unbegin({ jobId, attempt, takes }, epoch)),
    output: (jobId, part, chunks) => {
      const text = chunks.map(({ bytes }) => bytes.toString()).join("");
      const event = { type: "output", text, part: `${epoch}-${part}` } as const;
      return connection.script(`output ${jobId}`, () => events.publish({ ...of(jobId), event }));
    },
    artifact: (jobId, part, { id }) => {
      const event = { type: "artifact", id, part: `${epoch}-${part}` } as const;
      return connection.script(`artifact ${jobId}`, () => events.publish({ ...of(jobId), event }));
    },
    finished: async ({ id, attempt }, result, { leaves }) => {
      const queue = redis.queue(key);
      if (bug === "complete-before-the-record" && leaves)
        await connection.script(`complete ${id}`, () => queue.leave(entryId({ job: { id }, attempt })));
      const event = { type: "finished", result } as const;
      return connection.script(`finished ${id}`, () => events.publish({ ...of(id, attempt), event, leaves }));
    },
    finishedAndBegun: ({ id, attempt }, result, { next }) => {
      const event = { type: "finished", result } as const;
      const beginner = { ...of(next.jobId, next.attempt), ...next.position, notAfterMs: deadlineMs() };
      return connection.script(`finished ${id}, begin ${next.jobId}`, () => {
        const published = events.publish({ ...of(id, attempt), event, leaves: true });
        const begun = events.begin(beginner);
        trace.note("redis", `end-and-begin:${begun}`, next.jobId);
        return { published, begun };
      });
    },
    retrying: (jobId, { attempt }) => {
      const event = { type: "retrying", attempt, part: `${epoch}-retrying-${attempt}` } as const;
      const publication = { ...of(jobId, attempt), event, leaves: true };
      return connection.script(`retrying ${jobId}`, () => events.publish(publication));
    },
    progress: (jobId, attempt) =>
      connection.script(`progress ${jobId}`, () => events.progress({ key, jobId, attempt })),
  };
}
