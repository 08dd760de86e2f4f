import type { SimWorker } from "./sim-worker.ts";
import type { World } from "./world.ts";

/** Makes things happen at the worst moments, for as long as the storm lasts. */
export class Nemesis {
  readonly #world: World;
  #isOff = false;
  #forgets = false;
  readonly #deeds: readonly (() => void)[];

  constructor(world: World) {
    this.#world = world;
    const all = [
      () => this.#freezeAny(),
      () => this.#ambush(),
      () => this.#ambush(),
      () => this.#kill(),
      () => this.#double(),
      () => this.#stopWorker(),
      () => this.#yield(),
      () => this.#pause(),
      () => this.#redisAway(),
      () => this.#redisRefuses(),
      () => this.#redisFull(),
      () => this.#redisForgets(),
      () => this.#fleetOff(),
      () => this.#engineAway(),
    ];
    // Each seed has its own mix: some faults hide others.
    this.#deeds = all.filter(() => world.random.chance(0.6));
  }

  start(): void {
    const { random, time, settings } = this.#world;
    if (this.#deeds.length === 0) return;
    const deeds = random.between(0, 14);
    for (let done = 0; done < deeds; done++)
      time.after(random.between(0, settings.stormMs), () => random.pick(this.#deeds)());
  }

  #freezeAny(): void {
    const { random, settings, workers } = this.#world;
    this.#freeze(random.pick(workers).current, random.between(10, settings.leaseMs * 2.5));
  }

  /** Waits until a worker has sent a call that matters, and freezes it past its lease before the answer arrives. */
  #ambush(): void {
    const { random, settings } = this.#world;
    const wanted = random.pick([
      "begin",
      "begin",
      "output",
      "finished",
      "complete",
      "fetch",
      "active",
      "take",
    ]);
    this.#world.onActed = (worker, call) => {
      if (!call.startsWith(wanted)) return;
      this.#world.onActed = undefined;
      this.#freeze(worker, random.between(settings.leaseMs * 0.9, settings.leaseMs * 3));
    };
  }

  #freeze(worker: SimWorker, forMs: number): void {
    const { time, trace, weather } = this.#world;
    if (worker.process.state !== "running" || weather.isCalm) return;
    trace.note(worker.name, "freezes", `for ${Math.round(forMs)}`);
    worker.process.freeze();
    time.after(forMs, () => {
      trace.note(worker.name, "thaws");
      worker.process.thaw();
    });
  }

  #kill(): void {
    const { random, time, settings, trace } = this.#world;
    const machine = random.pick(this.#world.workers);
    trace.note(machine.current.name, "dies");
    machine.current.process.die();
    time.after(random.between(10, settings.leaseMs * 3), () => machine.restart());
  }

  #double(): void {
    const { random, settings, workers } = this.#world;
    random
      .pick(workers)
      .double(random.between(10, settings.leaseMs * 2), random.between(10, settings.leaseMs));
  }

  #stopWorker(): void {
    const { random, time, settings, trace } = this.#world;
    const machine = random.pick(this.#world.workers);
    const { current } = machine;
    if (current.process.state !== "running") return;
    trace.note(current.name, "stops");
    const budgetMs = random.between(0, settings.leaseMs);
    current.process.after(1, "io", () => current.drain());
    current.process.after(budgetMs, "timer", () => current.abandon());
    time.after(settings.leaseMs * 3, () => {
      if (machine.current !== current) return;
      trace.note(current.name, "dies");
      current.process.die();
      machine.restart();
    });
  }

  #yield(): void {
    const { random, trace } = this.#world;
    const tenancies = this.#world.workers.flatMap(({ current }) =>
      current.tenancies.map((tenancy) => ({ tenancy, current })),
    );
    if (tenancies.length === 0) return;
    const { tenancy, current } = random.pick(tenancies);
    trace.note(current.name, "yields", tenancy.key);
    current.process.after(1, "io", () => tenancy.yield());
  }

  #pause(): void {
    const { random, time, settings, redis, trace, workers } = this.#world;
    const key = random.pick(settings.keys);
    trace.note("client", "pauses", key);
    redis.leases.paused.add(key);
    if (random.chance(0.8)) for (const { current } of workers) current.receivePause(key);
    time.after(random.between(10, settings.leaseMs * 3), () => this.#world.resume(key));
  }

  #redisAway(): void {
    const { random, time, settings, weather, trace } = this.#world;
    const forMs = random.between(10, settings.leaseMs * 2);
    trace.note("redis", "away", `for ${forMs}`);
    weather.redisAwayUntilMs = Math.max(weather.redisAwayUntilMs, time.nowMs + forMs);
  }

  /** Its disk is full: it answers, and refuses all writes. */
  #redisRefuses(): void {
    const { random, time, settings, weather, trace } = this.#world;
    const forMs = random.between(10, settings.leaseMs * 6);
    trace.note("redis", "refusing", `for ${forMs}`);
    weather.redisRefusesUntilMs = Math.max(weather.redisRefusesUntilMs, time.nowMs + forMs);
  }

  /** Its memory is full: it ends, renews and delivers, and accepts nothing. */
  #redisFull(): void {
    const { random, time, settings, weather, trace } = this.#world;
    const forMs = random.between(10, settings.leaseMs * 3);
    trace.note("redis", "full", `for ${forMs}`);
    weather.redisFullUntilMs = Math.max(weather.redisFullUntilMs, time.nowMs + forMs);
  }

  /** Kills Redis up to a second after its last flush, and restarts it. Sometimes just after it has answered a worker. */
  #redisForgets(): void {
    const { random, time, redis, rules, trace, weather } = this.#world;
    if (this.#forgets) return;
    this.#forgets = true;
    const lostMs = random.between(1, 1_000);
    const restore = rules.keyspace.snapshot();
    const atMs = time.nowMs;
    const restart = () => {
      if (!this.#forgets) return;
      this.#forgets = false;
      if (weather.isCalm) return;
      const forMs = random.between(1, 500);
      trace.note("redis", "forgets", `the last ${time.nowMs - atMs}, and is away for ${forMs}`);
      redis.forget(restore);
      weather.redisAwayUntilMs = Math.max(weather.redisAwayUntilMs, time.nowMs + forMs);
    };
    time.after(lostMs, restart);
    if (random.chance(0.5)) return;
    this.#world.onActed = (_worker, call) => {
      if (call === "retry" || call === "addDeadLetter") restart();
    };
  }

  /** Stops all workers for a day. Redis first carries out what they had sent. */
  #fleetOff(): void {
    const { random, time, settings, trace, redis, workers } = this.#world;
    // After a second day off, records would expire under workers that have just started again.
    if (random.chance(0.5) || this.#isOff) return;
    this.#isOff = true;
    trace.note("world", "off for a day");
    for (const { current } of workers) current.process.die();
    time.after(settings.leaseMs * 6, () => {
      this.#isOff = false;
      // The end of the storm, or an earlier restart, may have started some of them again: then nothing expires.
      const areGone = workers.every(({ current }) => current.process.state === "dead");
      if (areGone) redis.events.expire((jobId) => this.#world.producer.knowsEnd(jobId));
      for (const machine of workers) machine.restart();
    });
  }

  #engineAway(): void {
    const { random, time, settings, weather, trace } = this.#world;
    const forMs = random.between(10, settings.leaseMs * 2);
    trace.note("engine", "away", `for ${forMs}`);
    weather.engineAwayUntilMs = Math.max(weather.engineAwayUntilMs, time.nowMs + forMs);
  }
}
