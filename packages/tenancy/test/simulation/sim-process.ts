import type { Clock } from "../../src/tenancy-ports.ts";
import type { Random } from "./random.ts";
import type { VirtualTime } from "./virtual-time.ts";

type Source = "timer" | "io";

interface Callback {
  readonly source: Source;
  readonly run: () => void;
}

/**
 * One worker's event loop, as the world sees it.
 *
 *   running ◀──thaw── frozen     its clock goes on; what is due for it is run when it thaws
 *      └──────────▶ dead         its promises never settle again
 *
 * On thawing, what came over the network may be run before timers that are long due: that is what libuv does.
 */
export class SimProcess {
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly #wallSkewMs: number;
  readonly #bornMs: number;
  #state: "running" | "frozen" | "dead" = "running";
  #runsSinceMs: number;
  #due: Callback[] = [];
  #sleeping = 0;

  constructor(time: VirtualTime, random: Random) {
    this.#time = time;
    this.#random = random;
    this.#runsSinceMs = time.nowMs;
    this.#bornMs = time.nowMs - random.between(0, 100_000);
    this.#wallSkewMs = random.between(-50, 50);
  }

  get state(): "running" | "frozen" | "dead" {
    return this.#state;
  }

  /** Since when nothing kept it from running its timers, in the world's time; undefined while something does. */
  get runsSinceMs(): number | undefined {
    return this.#state === "running" ? this.#runsSinceMs : undefined;
  }

  /** Sleeps that have not ended. */
  get sleeping(): number {
    return this.#sleeping;
  }

  /** Runs it here after a while, or as soon as this process can. */
  after(ms: number, source: Source, run: () => void): () => void {
    let wanted = true;
    const callback = { source, run: () => (wanted ? run() : undefined) };
    const forget = this.#time.after(ms, () => this.#deliver(callback));
    return () => {
      wanted = false;
      forget();
    };
  }

  freeze(): void {
    if (this.#state !== "running") return;
    this.#state = "frozen";
  }

  thaw(ioFirst = this.#random.chance(0.5)): void {
    if (this.#state !== "frozen") return;
    this.#state = "running";
    this.#runsSinceMs = this.#time.nowMs;
    const due = this.#due.splice(0);
    const order = ioFirst ? due.filter(({ source }) => source === "io") : due;
    const rest = ioFirst ? due.filter(({ source }) => source === "timer") : [];
    for (const callback of [...order, ...rest]) this.#time.after(0, () => this.#deliver(callback));
  }

  die(): void {
    if (this.#state === "dead") return;
    this.#state = "dead";
    this.#due = [];
  }

  readonly clock: Clock = {
    now: () => this.#time.nowMs - this.#bornMs,
    wall: () => this.#time.nowMs + this.#wallSkewMs,
    sleep: (ms, signal) => this.#sleep(ms, signal),
  };

  #deliver(callback: Callback): void {
    if (this.#state === "frozen") this.#due.push(callback);
    else if (this.#state === "running") callback.run();
  }

  #sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      this.#sleeping++;
      const wake = this.after(Math.max(1, ms), "timer", () => {
        this.#sleeping--;
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
      const onAbort = () => {
        this.#sleeping--;
        wake();
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }
}
