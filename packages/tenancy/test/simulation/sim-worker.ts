import { sandboxKey } from "@berth/protocol";
import { Tenancy } from "../../src/tenancy.ts";
import { Connection } from "./connection.ts";
import type { Host } from "./containers.ts";
import type { SimInstance } from "./lease-model.ts";
import type { Settings } from "./settings.ts";
import { simPorts } from "./sim-ports.ts";
import { SimProcess } from "./sim-process.ts";
import { SimTurns } from "./sim-turns.ts";
import type { World } from "./world.ts";

interface Held {
  readonly tenancy: Tenancy;
  readonly sinceMs: number;
}

/** Pause between two checks whether another sandbox waits for a slot. */
const lookMs = 500;
const heartbeatsInLease = 5;
/** Page size of a sweep and of an audit: smaller than the number of sandboxes and jobs, to test paging. */
const pageSize = 3;

/** One process of a worker: what `apps/worker`'s member does with offers, leases and slots, in few lines. */
export class SimWorker {
  readonly #world: World;
  readonly #settings: Settings;
  readonly #host: Host;
  readonly #connection: Connection;
  readonly #turns: SimTurns;
  readonly #held = new Map<string, Held>();
  readonly self: SimInstance;
  readonly name: string;
  readonly process: SimProcess;
  #stopping = false;
  #degradedUntilMs = 0;
  #sweepAfter = 0;
  #auditFrom = 0;
  #loops = 0;

  constructor(world: World, self: SimInstance, host: Host) {
    const { worker: name } = self;
    this.#world = world;
    this.#settings = world.settings;
    this.#host = host;
    this.name = name;
    this.self = self;
    this.process = new SimProcess(world.time, world.random);
    this.#turns = new SimTurns(world.settings.turns);
    const { time, weather, trace, settings } = world;
    this.#connection = new Connection({
      ...{ name, time, process: this.process, weather, trace },
      timeoutMs: settings.commandTimeoutMs,
      onActed: (call) => world.onActed?.(this, call),
      onRefused: () => world.redis.leases.refusals++,
    });
  }

  get tenancies(): readonly Tenancy[] {
    return [...this.#held.values()].map(({ tenancy }) => tenancy);
  }

  /** Calls, sleeps, loops and tenancies that have not ended. Empty once the worker was drained. */
  get leftovers(): string[] {
    const { sleeping } = this.process;
    return [
      ...[...this.#held.keys()].map((key) => `the tenancy of ${key}`),
      ...(this.#connection.open > 0 ? [`${this.#connection.open} calls`] : []),
      ...(sleeping > 0 ? [`${sleeping} sleeps`] : []),
      ...(this.#loops > 0 ? [`${this.#loops} loops`] : []),
    ];
  }

  start(): void {
    this.#world.redis.leases.claim(this.self);
    void this.#adopt().then(() => {
      void this.#loop(() => this.#takeOffer());
      void this.#loop(() => this.#makeRoom());
      void this.#loop(() => this.#sweep());
      void this.#loop(() => this.#audit());
      void this.#loop(() => this.#beat());
    });
  }

  drain(): void {
    this.#stopping = true;
    for (const { tenancy } of this.#held.values()) tenancy.stop();
  }

  abandon(): void {
    for (const { tenancy } of this.#held.values()) tenancy.abandon();
  }

  receiveCancel(key: string, jobId: string): void {
    this.process.after(2, "io", () => this.#held.get(key)?.tenancy.cancel(jobId));
  }

  receivePause(key: string): void {
    this.process.after(2, "io", () => this.#held.get(key)?.tenancy.yield());
  }

  async #loop(round: () => Promise<void>): Promise<void> {
    this.#loops++;
    while (!this.#stopping) {
      try {
        await round();
      } catch {
        await this.process.clock.sleep(250);
      }
    }
    this.#loops--;
  }

  async #adopt(): Promise<void> {
    for (const key of this.#host.keys) {
      const adopted = await this.#take(key).catch(() => undefined);
      if (adopted) void adopted.adopt();
      else this.#host.remove(key);
    }
  }

  get #hasRoom(): boolean {
    return this.#held.size < this.#settings.slots;
  }

  async #takeOffer(): Promise<void> {
    const { redis, time } = this.#world;
    if (!this.#hasRoom || time.nowMs < this.#degradedUntilMs) return await this.process.clock.sleep(100);
    await redis.offered.wait(this.process, 1_000);
    if (this.#stopping) return;
    const key = await this.#connection.bull("offer", () => redis.takeOffer());
    if (key !== undefined) await this.#take(key);
  }

  async #makeRoom(): Promise<void> {
    const { redis, settings } = this.#world;
    await this.process.clock.sleep(lookMs);
    if (this.#hasRoom || redis.offersWaiting === 0) return;
    const held = [...this.#held.values()].filter(({ tenancy }) => !tenancy.yielding);
    const idle = held.filter(({ tenancy }) => tenancy.idleSinceMs !== undefined);
    const nowMs = this.process.clock.now();
    const pastQuantum = held.filter((one) => !idle.includes(one) && nowMs - one.sinceMs > settings.quantumMs);
    const needed = redis.offersWaiting - (this.#held.size - held.length);
    for (const { tenancy } of [...idle, ...pastQuantum].slice(0, Math.max(0, needed))) tenancy.yield();
  }

  async #sweep(): Promise<void> {
    await this.process.clock.sleep(this.#settings.sweepMs);
    const { redis } = this.#world;
    const page = { after: this.#sweepAfter, limit: pageSize, olderThanMs: this.#settings.sweepMs };
    this.#sweepAfter = await this.#connection.bull("sweep", () => redis.sweep(page));
  }

  async #audit(): Promise<void> {
    const { leaseMs } = this.#settings;
    await this.process.clock.sleep(leaseMs);
    const page = { from: this.#auditFrom, limit: pageSize, olderThanMs: leaseMs };
    this.#auditFrom = await this.#connection.script("audit", () => this.#world.redis.events.audit(page));
  }

  async #beat(): Promise<void> {
    await this.process.clock.sleep(this.#settings.leaseMs / heartbeatsInLease);
    await this.#connection.script("beat", () => this.#world.redis.leases.writesSince());
  }

  async #take(key: string): Promise<Tenancy | undefined> {
    const { redis, settings } = this.#world;
    if (this.#held.has(key) || this.#stopping) return undefined;
    const takenAtMs = this.process.clock.now();
    const taken = await this.#connection.script("take", () =>
      redis.leases.take(key, this.self, settings.leaseMs),
    );
    if (!taken || this.#held.has(key)) return undefined;
    const tenancy = this.#hold(key, taken, takenAtMs);
    if (taken.takenOver) void tenancy.adopt();
    return tenancy;
  }

  #hold(
    key: string,
    taken: { readonly epoch: number; readonly deadlineMs: number },
    takenAtMs: number,
  ): Tenancy {
    const { epoch, deadlineMs } = taken;
    const { settings, process } = { settings: this.#settings, process: this.process };
    const { leaseMs, parallel, parkedMost, idleMs, maxAgeMs, onNoSandbox, closesFirst, parks, removeOnStop } =
      settings;
    const { time, random, weather, redis, trace, rules, bug } = this.#world;
    const tenancy = new Tenancy(
      {
        key: sandboxKey.parse(key),
        epoch,
        leaseMs,
        takenAtMs,
        parallel,
        parkedMost,
        idleMs,
        maxAgeMs,
        onNoSandbox,
        closesFirst,
        parks,
        removeOnStop,
      },
      simPorts({
        ...{ time, random, weather, redis, trace, rules, process, key, epoch, deadlineMs, leaseMs, bug },
        worker: this.name,
        instance: this.self.instance,
        host: this.#host,
        connection: this.#connection,
        turns: this.#turns,
        token: `${this.self.instance}-${epoch}`,
      }),
    );
    this.#held.set(key, { tenancy, sinceMs: process.clock.now() });
    void tenancy.run().then((end) => this.#ended(key, epoch, end));
    if (this.#stopping) tenancy.stop();
    return tenancy;
  }

  async #ended(key: string, epoch: number, end: string): Promise<void> {
    const { trace, redis, time } = this.#world;
    trace.note(this.name, `end:${end}`, `${key} epoch ${epoch}`);
    this.#held.delete(key);
    if (end === "no-sandbox") this.#degradedUntilMs = time.nowMs + this.#settings.leaseMs / 2;
    if (end !== "fenced") this.#world.rules.handOvers.gaveUp(key, epoch);
    if (end !== "released" && end !== "handed-back") return;
    const offerAgain = () => (redis.leases.isUnheld(key) ? redis.offer(key) : undefined);
    await this.#connection.bull("offer again", offerAgain).catch(() => {});
  }
}
