import { Host } from "./containers.ts";
import { checkEnd } from "./end-rules.ts";
import { Nemesis } from "./nemesis.ts";
import { Producer } from "./producer.ts";
import { Random } from "./random.ts";
import { Rules, type Violation } from "./rules.ts";
import { chooseSettings, type Settings } from "./settings.ts";
import { SimRedis } from "./sim-redis.ts";
import { SimWorker } from "./sim-worker.ts";
import { Trace } from "./trace.ts";
import { VirtualTime } from "./virtual-time.ts";
import { Weather } from "./weather.ts";

/** A machine on which one worker lives, again and again. */
export class WorkerPlace {
  readonly #world: World;
  readonly #name: string;
  readonly #host: Host;
  #lives = 1;
  current: SimWorker;

  constructor(world: World, name: string) {
    this.#world = world;
    this.#name = name;
    const { time, random, rules, settings } = world;
    this.#host = new Host({ time, random, rules, leaseMs: settings.leaseMs });
    this.current = new SimWorker(world, name, this.#host, 1);
  }

  /** If it is dead: another life of the same worker. */
  restart(): void {
    if (this.current.process.state !== "dead") return;
    this.#world.trace.note(this.#name, "restarts");
    this.current = new SimWorker(this.#world, this.#name, this.#host, ++this.#lives);
    this.current.start();
  }
}

/** After the storm everything ends within so many leases: jobs in line run one after the other. */
const calmLeases = 200;

/**
 * A fleet in which everything is ours: time, Redis, sandboxes, and what goes wrong. The same seed is the same story.
 *
 *   storm: jobs come, faults happen ──▶ calm: no more of either ──every job has ended──▶ idle ──▶ drained: nothing is left
 */
export class World {
  readonly time = new VirtualTime();
  readonly trace = new Trace(this.time);
  readonly random: Random;
  readonly settings: Settings;
  readonly rules: Rules;
  readonly weather: Weather;
  readonly redis: SimRedis;
  readonly workers: readonly WorkerPlace[];

  constructor(seed: number) {
    this.random = new Random(seed);
    this.settings = chooseSettings(this.random);
    const { leaseMs, parallel, turns, workers } = this.settings;
    this.rules = new Rules({ time: this.time, trace: this.trace, leaseMs, parallel, turns });
    this.weather = new Weather(this.random, leaseMs);
    this.redis = new SimRedis(this.time, this.rules);
    this.workers = Array.from(
      { length: workers },
      (_, index) => new WorkerPlace(this, `worker-${index + 1}`),
    );
  }

  async run(): Promise<Violation | undefined> {
    for (const { current } of this.workers) current.start();
    new Producer(this).start();
    new Nemesis(this).start();
    await this.#until(this.settings.stormMs, () => false);
    this.#calm();
    const { leaseMs, idleMs } = this.settings;
    const allMs = this.time.nowMs + leaseMs * calmLeases;
    const isOver = () => [...this.rules.jobs.keys()].every((id) => this.rules.isFinished(id));
    await this.#until(allMs, () => this.rules.jobs.size === this.settings.jobs && isOver());
    await this.#until(this.time.nowMs + idleMs + leaseMs * 5, () => false);
    checkEnd(this);
    for (const { current } of this.workers) current.drain();
    await this.#until(this.time.nowMs + leaseMs * 5, () => false);
    for (const { current } of this.workers)
      for (const left of current.leftovers)
        this.rules.broken("nothing is left when a worker has stopped", left, [current.name]);
    return this.rules.violation;
  }

  resume(key: string): void {
    if (!this.redis.leases.paused.delete(key)) return;
    this.trace.note("client", "resumes", key);
    this.redis.offer(key);
  }

  #calm(): void {
    this.trace.note("world", "calm");
    this.weather.calmDown();
    for (const key of this.settings.keys) this.resume(key);
    for (const place of this.workers) {
      place.current.process.thaw();
      place.restart();
    }
  }

  async #until(untilMs: number, isOver: () => boolean): Promise<void> {
    while (!this.rules.violation && !isOver() && (await this.time.step(untilMs)));
  }
}
