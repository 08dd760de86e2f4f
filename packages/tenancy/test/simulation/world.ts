import { Host } from "./containers.ts";
import { checkEnd, checkStopped } from "./end-rules.ts";
import { Nemesis } from "./nemesis.ts";
import { forgetBeforeHandOver, type PlantedBug, renewWithoutProgress } from "./planted-bug.ts";
import { Producer } from "./producer.ts";
import { Random } from "./random.ts";
import { Rules } from "./rules.ts";
import { chooseSettings, type Settings } from "./settings.ts";
import { SimRedis } from "./sim-redis.ts";
import { SimWorker } from "./sim-worker.ts";
import { Trace } from "./trace.ts";
import type { Violation } from "./violation.ts";
import { VirtualTime } from "./virtual-time.ts";
import { Storm } from "./weather.ts";

/** A machine that runs one process of its worker after the other. */
export class WorkerMachine {
  readonly #world: World;
  readonly #name: string;
  readonly #host: Host;
  #processes = 1;
  #retired = false;
  current: SimWorker;

  constructor(world: World, name: string) {
    this.#world = world;
    this.#name = name;
    const { time, rules, settings } = world;
    this.#host = new Host({ time, rules, leaseMs: settings.leaseMs });
    this.current = new SimWorker(world, { worker: name, instance: `${name}.1` }, this.#host);
  }

  /** If the process is dead, starts another one of the same worker. */
  restart(): void {
    if (this.#retired || this.current.process.state !== "dead") return;
    this.#world.trace.note(this.#name, "restarts");
    this.#startProcess();
  }

  /** The process hangs, so another one is started with its worker id. Then it wakes up, and ends only when it notices. */
  double(asleepMs: number, unawareMs: number): void {
    const { trace, time } = this.#world;
    const { process } = this.current;
    if (this.#retired || process.state === "dead") return;
    trace.note(this.#name, "doubles", `asleep for ${asleepMs}, unaware for ${unawareMs}`);
    process.freeze();
    time.after(asleepMs, () => process.thaw());
    time.after(asleepMs + unawareMs, () => process.die());
    this.#startProcess();
  }

  #startProcess(): void {
    const { self, process } = this.current;
    const predecessor = process.state === "dead" ? self.instance : undefined;
    const next = { worker: this.#name, instance: `${this.#name}.${++this.#processes}`, predecessor };
    this.current = new SimWorker(this.#world, next, this.#host);
    this.current.start();
  }

  /** Starts no more processes, and drains the current one. */
  retire(): void {
    this.#retired = true;
    this.current.drain();
  }
}

/** After the storm all jobs end within this many leases, even if they run one after the other. */
const calmLeases = 200;

/**
 * A simulated fleet: time, Redis, sandboxes and faults. The same seed gives the same story.
 *
 *   storm: jobs come, faults happen ──▶ calm: no more of either ──every job has ended──▶ idle ──▶ drained: nothing is left
 */
export class World {
  readonly time = new VirtualTime();
  readonly trace = new Trace(this.time);
  readonly random: Random;
  readonly settings: Settings;
  readonly rules: Rules;
  readonly weather: Storm;
  readonly redis: SimRedis;
  readonly producer: Producer;
  readonly workers: readonly WorkerMachine[];
  /** Called when Redis has carried out a worker's call, before the worker gets the answer. */
  onActed: ((worker: SimWorker, call: string) => void) | undefined;

  readonly bug: PlantedBug | undefined;

  constructor(seed: number, bug?: PlantedBug) {
    this.bug = bug;
    this.random = new Random(seed);
    this.settings = chooseSettings(this.random);
    const { leaseMs, parallel, turns, workers } = this.settings;
    this.rules = new Rules({ time: this.time, trace: this.trace, leaseMs, parallel, turns });
    this.weather = new Storm(this.random, leaseMs);
    this.redis = new SimRedis(this.time, this.rules, bug);
    this.producer = new Producer(this);
    this.workers = Array.from(
      { length: workers },
      (_, index) => new WorkerMachine(this, `worker-${index + 1}`),
    );
  }

  async run(): Promise<Violation | undefined> {
    const restore = this.#plant();
    try {
      return await this.#play();
    } finally {
      restore();
    }
  }

  /** Bugs of the product's own code; the models have the others. */
  #plant(): () => void {
    if (this.bug === "renew-without-progress") return renewWithoutProgress(this.time, this.settings.leaseMs);
    return this.bug === "forget-before-hand-over" ? forgetBeforeHandOver() : () => {};
  }

  async #play(): Promise<Violation | undefined> {
    for (const { current } of this.workers) current.start();
    this.producer.start();
    new Nemesis(this).start();
    const { stormMs, leaseMs, idleMs, keys } = this.settings;
    const { rules, redis, workers } = this;
    await this.#until(stormMs, () => false);
    this.#calm();
    await this.#until(stormMs + leaseMs * calmLeases, () => this.producer.isDone && rules.areAllFinished);
    const isGivenUp = () => keys.every((key) => !redis.leases.isLive(key) && !redis.leases.pending.has(key));
    await this.#until(this.time.nowMs + idleMs + leaseMs * 5, isGivenUp);
    // Commands of a dead worker end when their container got no ping for a lease.
    await this.#until(this.time.nowMs + leaseMs, () => rules.running.size === 0);
    if (!rules.violation) checkEnd(this);
    for (const machine of workers) machine.retire();
    const isStopped = () => workers.every(({ current }) => current.leftovers.length === 0);
    await this.#until(this.time.nowMs + leaseMs * 5, isStopped);
    if (!rules.violation) checkStopped(this);
    return rules.violation;
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
    for (const machine of this.workers) {
      machine.current.process.thaw();
      machine.restart();
    }
  }

  async #until(untilMs: number, isOver: () => boolean): Promise<void> {
    while (!this.rules.violation && !isOver() && (await this.time.step(untilMs)));
  }
}
