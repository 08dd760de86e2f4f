import { Connection } from "./connection.ts";
import { makeJob } from "./job-maker.ts";
import type { SimJob } from "./sim-job.ts";
import { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/** Makes jobs at moments of its choosing, and wants some of them cancelled. */
export class Producer {
  readonly #world: World;
  readonly #connection: Connection;

  constructor(world: World) {
    this.#world = world;
    const { time, random, weather, trace, settings } = world;
    const process = new SimProcess(time, random);
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

  /** Retried until it is known to be in: the same id is one job. */
  async #submit(job: SimJob): Promise<void> {
    const { redis } = this.#world;
    for (;;) {
      try {
        const held = await this.#connection.bull(`add ${job.id}`, () => redis.add({ job, attempt: 1 }));
        // A producer that dies here leaves the offering to the sweep.
        if (!held && this.#world.random.chance(0.9))
          await this.#connection.bull("offer", () => redis.offer(job.key));
        return this.#maybeCancel(job);
      } catch {
        // The answer did not come; nobody knows.
      }
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
      await this.#connection.bull(`wish ${id}`, () => redis.events.wishCancelled(id));
      if (random.chance(0.1)) return;
      const attempt = redis.waitingAttempt(job);
      const far = random.chance(0.3);
      const said = await this.#connection.script(`cancel ${id}`, () =>
        redis.events.cancel({ key, jobId: id, attempt }, far),
      );
      trace.note("client", `cancel:${said}`, id);
      // Messages get lost while connections are away.
      for (const { current } of workers) if (random.chance(0.9)) current.hearCancel(key, id);
    } catch {
      return;
    }
  }
}
