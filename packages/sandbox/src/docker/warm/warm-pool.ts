import { setTimeout as sleep } from "node:timers/promises";
import type { WarmFacts } from "../containers.ts";
import type { ParkedContainers } from "../parked.ts";
import type { WorkspaceOptions } from "../workspace.ts";
import { makeWarm, type WarmContainer, type WarmMaker } from "./warm-container.ts";
import { type Demand, planWarm, rememberedMs, type WarmSizes, warmTargets } from "./warm-plan.ts";
import type { WarmShape } from "./warm-shape.ts";

export interface WarmPoolOptions
  extends Pick<WarmMaker, "fleet" | "worker" | "containers" | "mounter" | "helloDeadlineMs"> {
  readonly sizes: WarmSizes;
  readonly parked: () => Promise<ParkedContainers>;
  readonly workspaces: () => Promise<WorkspaceOptions>;
  /** The shape that fits the default profile; undefined while no container of it can be made. */
  readonly base: (signal: AbortSignal) => Promise<WarmShape | undefined>;
  /** Called when the pool begins to have containers, or cannot have any; `why` has the reason. */
  readonly onState: (state: "ready" | "off" | "failing", why: string) => void;
}

/** The pool's counters. */
export interface WarmReport {
  /** Containers that wait for a sandbox. */
  readonly ready: number;
  /** Sandboxes that got a container of the pool. */
  readonly served: number;
  /** Sandboxes that could have used one, while none was ready. */
  readonly missed: number;
  /** Why the pool has no containers; absent while it may have some. */
  readonly why?: string | undefined;
}

const lookMs = 30_000;
/** After it made a container the pool rests this many times as long as that took: jobs need the engine first. */
const restShare = 3;
const mostRestMs = 2_000;
/** The pool waits at most this long for sandboxes that are being started. */
const mostDeferredMs = 1_000;
/** Pause after a failure, doubled with each further failure in a row. */
const failedRestMs = 30_000;
const mostFailedRestMs = 240_000;
/** After this long a container that was never started must have been left by a worker that died. */
const neverStartedMs = 300_000;
const mostDemand = 1_000;
/** After this many workspaces in a row that could not be mounted, the pool pauses. */
const unmountedMost = 3;
/** Containers of one worker, waiting or assigned. The mounter has as many slots. */
const mostNumbers = 256;

/**
 * Containers that are started before their sandbox is known.
 *
 *   missing ──makeWarm(), one at a time, between rests──▶ ready ──take()──▶ its sandbox's, which removes it
 *                                                           ├──too many for what was asked for lately──▶ removed
 *                                                           └──it ends, or the worker stops──▶ removed
 *
 * Where the kernel, the file system or the worker's capabilities do not allow to mount a workspace in a container that runs, or the
 * engine is without root, there are none, and `report.why` names the reason.
 */
export class WarmPool {
  readonly #options: WarmPoolOptions;
  readonly #stopping = new AbortController();
  readonly #ready: WarmContainer[] = [];
  /** When each container was taken, by its id. The note that assigns it to a sandbox may not be written yet. */
  readonly #taken = new Map<string, number>();
  readonly #starts = new Set<symbol>();
  #numbers = new Set<number>();
  #demand: Demand[] = [];
  #loop: Promise<void> = Promise.resolve();
  #woken = Promise.withResolvers<void>();
  #quiet = Promise.withResolvers<void>();
  #why: string | undefined;
  #restUntilMs = 0;
  #failures = 0;
  #unmounted = 0;
  #served = 0;
  #missed = 0;

  constructor(options: WarmPoolOptions) {
    this.#options = options;
  }

  get report(): WarmReport {
    return { ready: this.#ready.length, served: this.#served, missed: this.#missed, why: this.#why };
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** Removes the containers that wait. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#woken.resolve();
    this.#quiet.resolve();
    await this.#loop;
    await Promise.all(this.#ready.splice(0).map((one) => this.#remove(one)));
    this.#options.mounter.stop();
  }

  /** Undefined: none is ready. The caller assigns the container or removes it. */
  take(shape: WarmShape): WarmContainer | undefined {
    if (this.#stopping.signal.aborted) return undefined;
    this.#demand = [...this.#demand.slice(1 - mostDemand), { shape, atMs: performance.now() }];
    this.#woken.resolve();
    const index = this.#ready.findIndex((one) => one.shape.id === shape.id);
    const [taken] = index < 0 ? [] : this.#ready.splice(index, 1);
    if (taken) {
      this.#served++;
      this.#taken.set(taken.id, performance.now());
    } else if (this.#why === undefined) this.#missed++;
    return taken;
  }

  /** A container that was taken could not be assigned. */
  unserved(): void {
    this.#served--;
    this.#missed++;
  }

  /** A container that was taken serves its sandbox. */
  reached(): void {
    this.#unmounted = 0;
  }

  /** A workspace could not be mounted. A single failure may be that sandbox's, several in a row are this host's. */
  failed(why: string): void {
    if (++this.#unmounted >= unmountedMost) this.#fail(why);
  }

  /** The mounter's process has ended, and with it the slots of all waiting containers. */
  forget(): void {
    for (const one of this.#ready.splice(0)) void this.#remove(one);
    this.#woken.resolve();
  }

  /** A sandbox is being started: the pool waits a moment for it. */
  deferTo(): Disposable {
    const start = Symbol();
    this.#starts.add(start);
    return {
      [Symbol.dispose]: () => {
        this.#starts.delete(start);
        if (this.#starts.size > 0) return;
        this.#quiet.resolve();
        this.#quiet = Promise.withResolvers<void>();
      },
    };
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let lookedMs = Number.NEGATIVE_INFINITY;
    let isPossible = false;
    while (!signal.aborted) {
      try {
        if (!isPossible) {
          const why = await this.#whyNot();
          if (why !== undefined) return this.#turnOff(why);
          isPossible = true;
        }
        if (performance.now() - lookedMs > lookMs) {
          await this.#look();
          lookedMs = performance.now();
        }
        if (await this.#step()) continue;
      } catch (error) {
        if (!signal.aborted) this.#fail(error instanceof Error ? error.message : String(error));
      }
      await this.#sleepUntilWoken(Math.max(lookMs / 6, this.#restUntilMs - performance.now()));
    }
  }

  async #whyNot(): Promise<string | undefined> {
    if (process.getuid?.() !== 0) return "the worker is not root";
    if ((await this.#options.workspaces()).rootlessEngine) return "the engine runs without root";
    return await this.#options.mounter.whyNot();
  }

  #turnOff(why: string): void {
    if (this.#stopping.signal.aborted) return;
    this.#why = why;
    this.#options.onState("off", why);
  }

  /** One step towards the plan. False: nothing to do. */
  async #step(): Promise<boolean> {
    if (performance.now() < this.#restUntilMs) return false;
    const nowMs = performance.now();
    this.#demand = this.#demand.filter(({ atMs }) => nowMs - atMs < rememberedMs);
    const counts = new Map<string, number>();
    for (const { shape } of this.#ready) counts.set(shape.id, (counts.get(shape.id) ?? 0) + 1);
    const targets = warmTargets(
      this.#demand,
      await this.#options.base(this.#stopping.signal),
      this.#options.sizes,
      nowMs,
    );
    const { make, remove } = planWarm(targets, counts);
    if (remove !== undefined) await this.#removeOne(remove);
    else if (make) await this.#makeOne(make);
    return remove !== undefined || make !== undefined;
  }

  async #makeOne(shape: WarmShape): Promise<void> {
    const { signal } = this.#stopping;
    if (this.#starts.size > 0) await Promise.race([this.#quiet.promise, this.#sleep(mostDeferredMs)]);
    const number = this.#freeNumber();
    if (number === undefined || signal.aborted) {
      this.#restUntilMs = performance.now() + mostRestMs;
      return;
    }
    this.#numbers.add(number);
    const startedMs = performance.now();
    const { parked, workspaces } = this.#options;
    const maker = { ...this.#options, scope: (await parked()).scope, workspaces: await workspaces() };
    const made = await makeWarm(maker, shape, number, signal);
    this.#ready.push(made);
    void made.closed.then(() => this.#lost(made));
    if (this.#why !== undefined || this.#served + this.#ready.length === 1)
      this.#options.onState("ready", "");
    this.#why = undefined;
    this.#failures = 0;
    await this.#sleep(Math.min(mostRestMs, restShare * (performance.now() - startedMs)));
  }

  async #removeOne(shapeId: string): Promise<void> {
    const index = this.#ready.findIndex(({ shape }) => shape.id === shapeId);
    for (const one of index < 0 ? [] : this.#ready.splice(index, 1)) await this.#remove(one);
  }

  #lost(container: WarmContainer): void {
    const index = this.#ready.indexOf(container);
    if (index < 0) return;
    this.#ready.splice(index, 1);
    void this.#remove(container);
    this.#woken.resolve();
  }

  async #remove(container: WarmContainer): Promise<void> {
    container.close();
    await this.#options.mounter.close(container.number);
    await this.#options.containers.remove(container.id, {}).catch(() => {});
  }

  #fail(why: string): void {
    if (this.#why !== why) this.#options.onState("failing", why);
    this.#why = why;
    this.#restUntilMs = performance.now() + Math.min(mostFailedRestMs, failedRestMs * 2 ** this.#failures++);
  }

  #freeNumber(): number | undefined {
    for (let number = 0; number < mostNumbers; number++) if (!this.#numbers.has(number)) return number;
    return undefined;
  }

  /** Learns which numbers are in use, and removes containers that dead workers and failed removals left. */
  async #look(): Promise<void> {
    const { containers, fleet, worker } = this.#options;
    const parked = await this.#options.parked();
    const before = performance.now();
    const found = (await containers.listWarm(fleet, {})).filter(({ scope }) => scope === parked.scope);
    const assigned = new Set((await parked.all()).map(({ containerId }) => containerId));
    for (const [id, atMs] of this.#taken) if (before - atMs > 2 * lookMs) this.#taken.delete(id);
    const waiting = new Set(this.#ready.map(({ id }) => id));
    const isKnown = ({ id }: WarmFacts) => assigned.has(id) || waiting.has(id) || this.#taken.has(id);
    for (const one of found) if (!isKnown(one) && this.#isLeft(one)) await containers.remove(one.id, {});
    this.#numbers = new Set(found.filter((one) => one.worker === worker).map(({ number }) => number));
  }

  /** This worker makes none while it looks. So an unknown container of its own was made by an earlier process of the worker. */
  #isLeft({ worker, state, createdAtMs }: WarmFacts): boolean {
    if (worker === this.#options.worker || state === "exited" || state === "dead") return true;
    return state === "created" && Date.now() - createdAtMs > neverStartedMs;
  }

  async #sleepUntilWoken(ms: number): Promise<void> {
    const timer = setTimeout(() => this.#woken.resolve(), ms);
    await this.#woken.promise;
    clearTimeout(timer);
    if (!this.#stopping.signal.aborted) this.#woken = Promise.withResolvers<void>();
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stopping.signal }).catch(() => {});
  }
}
