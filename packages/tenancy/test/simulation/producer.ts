import { Connection } from "./connection.ts";
import { makeJob } from "./job-maker.ts";
import type { SimJob } from "./sim-job.ts";
import { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/**
 * A client: submits jobs at random times, cancels some of them, and waits for their ends.
 *
 *   submitted ──answer lost, or refused──▶ submitted again under the same id
 *   waiting ──end received, or looked after a reconnection and every half minute──▶ ended
 *     └──unknown to Redis in two looks──▶ submitted again under the same id
 */
export class Producer {
  readonly #world: World;
  readonly #connection: Connection;
  readonly #process: SimProcess;
  readonly #waiting = new Set<string>();
  readonly #ended = new Set<string>();

  constructor(world: World) {
    this.#world = world;
    const { time, random, weather, trace, settings } = world;
    const process = new SimProcess(time, random);
    this.#process = process;
    world.redis.events.onEnd = (jobId) => this.#noteEnd(jobId);
    const { commandTimeoutMs: timeoutMs } = settings;
    this.#connection = new Connection({
      ...{ name: "client", time, process, weather, trace, timeoutMs },
      onRefused: () => world.redis.leases.refusals++,
    });
  }

  start(): void {
    const { random, time, settings } = this.#world;
    for (let made = 0; made < settings.jobs; made++) {
      const atMs = random.chance(0.3) ? random.between(0, 20) : random.between(0, settings.stormMs);
      time.after(atMs, () => void this.#submit(makeJob(made, time.nowMs, random, settings)));
    }
  }

  /** Retried under the same id until Redis has answered. */
  async #submit(job: SimJob): Promise<void> {
    const { redis } = this.#world;
    for (;;) {
      try {
        const held = await this.#connection.bull(`add ${job.id}`, () => redis.add({ job, attempt: 1 }));
        // If a producer dies here, the sweep offers the sandbox.
        if (!held && this.#world.random.chance(0.9))
          await this.#connection.bull("offer", () => redis.offer(job.key));
        this.#maybeCancel(job);
        return await this.#waitForEnd(job);
      } catch {
        // The answer did not come: the job may be accepted or not.
      }
    }
  }

  get isDone(): boolean {
    return this.#ended.size === this.#world.settings.jobs;
  }

  get waiting(): readonly string[] {
    return [...this.#waiting];
  }

  knowsEnd(jobId: string): boolean {
    return this.#ended.has(jobId);
  }

  /** The inbox delivers an end, unless the connection is away just then. */
  #noteEnd(jobId: string): void {
    const { random } = this.#world;
    if (random.chance(0.8)) this.#process.after(random.between(1, 20), "io", () => this.#markEnded(jobId));
  }

  #markEnded(jobId: string): void {
    if (this.#waiting.delete(jobId)) this.#ended.add(jobId);
  }

  async #waitForEnd(job: SimJob): Promise<void> {
    const { redis, random, settings, trace } = this.#world;
    const { id } = job;
    this.#waiting.add(id);
    for (let unknown = 0; this.#waiting.has(id); ) {
      const reconnects = random.chance(0.1);
      await this.#process.clock.sleep(reconnects ? random.between(1, settings.checkMs) : settings.checkMs);
      if (!this.#waiting.has(id)) return;
      const look = () => redis.events.stateOf(id);
      const state = await this.#connection.script(`check ${id}`, look).catch(() => "unfinished" as const);
      if (state === "ended") {
        trace.note("client", "found", id);
        return this.#markEnded(id);
      }
      unknown = state === "unknown" ? unknown + 1 : 0;
      if (unknown < 2) continue;
      trace.note("client", "job-unknown", id);
      this.#waiting.delete(id);
      return await this.#submit(job);
    }
  }

  #maybeCancel(job: SimJob): void {
    const { random, time, settings } = this.#world;
    if (!random.chance(0.12)) return;
    time.after(random.between(0, settings.leaseMs), () => void this.#cancel(job));
  }

  /** It may die, or lose Redis, between any two steps. */
  async #cancel(job: SimJob): Promise<void> {
    const { redis, workers, trace, random } = this.#world;
    const { id, key } = job;
    trace.note("client", "cancels", id);
    try {
      await this.#connection.bull(`request ${id}`, () => redis.events.requestCancellation(id));
      if (random.chance(0.1)) return;
      const attempt = redis.waitingAttempt(job);
      const far = random.chance(0.3);
      const answer = await this.#connection.script(`cancel ${id}`, () =>
        redis.events.cancel({ key, jobId: id, attempt }, far),
      );
      trace.note("client", `cancel:${answer}`, id);
      // Messages get lost while connections are away.
      for (const { current } of workers) if (random.chance(0.9)) current.receiveCancel(key, id);
    } catch {
      return;
    }
  }
}
