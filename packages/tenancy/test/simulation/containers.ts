import { Fault } from "@berth/protocol";
import type { Rules } from "./rules.ts";
import type { CommandPlan } from "./sim-job.ts";
import type { SimProcess } from "./sim-process.ts";
import type { Command } from "./violation.ts";
import type { VirtualTime } from "./virtual-time.ts";

export interface Ears {
  /** Settles when the worker has taken it: then the command may send more. */
  readonly onChunk: (text: string) => Promise<void>;
  readonly onEnd: (how: "exited" | "killed" | "gone" | "lease-over") => void;
}

interface Running {
  readonly command: Command;
  readonly ears: Ears;
  readonly speaker: Speaker;
}

export interface HostOptions {
  readonly time: VirtualTime;
  readonly rules: Rules;
  readonly leaseMs: number;
}

/** A frame between a worker and init takes this long. */
const frameMs = 1;
/** A worker gives a sign of life this often in a lease. */
const signsInLease = 6;

/** Who speaks to a container, and how long it may still act. */
export interface Speaker {
  readonly process: SimProcess;
  readonly epoch: number;
  readonly leftMs: () => number;
}

/**
 * One sandbox's container as init rules it: obeys the highest epoch it has seen, ends everything when what the worker said was left of
 * its lease is over, and takes commands again when signs come again.
 */
export class Container {
  readonly #options: HostOptions;
  readonly #running = new Set<Running>();
  #speaker: Speaker;
  #gone = false;
  #parked = false;
  #starved = false;
  #signMs = 0;
  #stopWatch: (() => void) | undefined;

  constructor(options: HostOptions, speaker: Speaker) {
    this.#options = options;
    this.#speaker = speaker;
    this.#goOnSigning(speaker);
  }

  get isParked(): boolean {
    return this.#parked;
  }

  get epoch(): number {
    return this.#speaker.epoch;
  }

  /** The next holder on the same host: what an earlier one left running is ended first. */
  adopt(speaker: Speaker): void {
    this.#endAll("killed");
    this.#parked = false;
    this.#speaker = speaker;
    this.#goOnSigning(speaker);
  }

  /** Given up with nothing in it: takes commands again from its next holder. */
  park(): void {
    this.#endAll("killed");
    this.#stopWatch?.();
    this.#parked = true;
    this.#starved = true;
  }

  remove(): void {
    this.#endAll("gone");
    this.#stopWatch?.();
    this.#gone = true;
  }

  /** What it gives back ends the command. */
  exec(command: Command, plan: CommandPlan, ears: Ears): () => void {
    const { time, rules } = this.#options;
    const speaker = this.#speaker;
    const running: Running = { command, ears, speaker };
    // A worker whose timers are late is heard of before what it asks for.
    if (command.epoch === speaker.epoch && time.nowMs - this.#signMs > this.#signEveryMs) this.#sign(speaker);
    time.after(frameMs, () => {
      if (this.#gone || command.epoch !== this.epoch) return this.#answer(running, "gone");
      if (this.#starved) return this.#answer(running, "lease-over");
      this.#running.add(running);
      rules.starts(command);
      this.#goOn(running, plan, 0);
    });
    return () => {
      time.after(frameMs, () => this.#end(running, "killed"));
    };
  }

  #goOn(running: Running, plan: CommandPlan, said: number): void {
    const { time } = this.#options;
    const stepMs = plan.runMs / (plan.chunks.length + 1);
    time.after(stepMs, () => {
      if (!this.#running.has(running)) return;
      const chunk = plan.chunks[said];
      if (chunk === undefined) return this.#end(running, "exited");
      const { ears, speaker } = running;
      speaker.process.after(frameMs, "io", () => {
        void ears.onChunk(chunk).then(() => this.#goOn(running, plan, said + 1));
      });
    });
  }

  #end(running: Running, how: "exited" | "killed" | "gone"): void {
    if (!this.#running.delete(running)) return;
    this.#options.rules.ends(running.command, how);
    this.#answer(running, how);
  }

  #answer({ ears, speaker }: Running, how: Parameters<Ears["onEnd"]>[0]): void {
    speaker.process.after(frameMs, "io", () => ears.onEnd(how));
  }

  #endAll(how: "killed" | "gone"): void {
    for (const running of this.#running) this.#end(running, how);
  }

  get #signEveryMs(): number {
    return this.#options.leaseMs / signsInLease;
  }

  #goOnSigning(speaker: Speaker): void {
    if (this.#gone || speaker !== this.#speaker) return;
    this.#sign(speaker);
    speaker.process.after(this.#signEveryMs, "timer", () => this.#goOnSigning(speaker));
  }

  #sign(speaker: Speaker): void {
    const { time } = this.#options;
    const leftMs = speaker.leftMs();
    this.#signMs = time.nowMs;
    time.after(frameMs, () => {
      if (this.#gone || this.#parked || speaker !== this.#speaker) return;
      this.#starved = false;
      this.#stopWatch?.();
      this.#stopWatch = time.after(Math.max(1, leftMs), () => {
        this.#starved = true;
        this.#endAll("gone");
      });
    });
  }
}

/** The containers of one host. They outlive their workers. */
export class Host {
  readonly #options: HostOptions;
  readonly #containers = new Map<string, Container>();

  constructor(options: HostOptions) {
    this.#options = options;
  }

  get keys(): string[] {
    return [...this.#containers.keys()];
  }

  open(key: string, speaker: Speaker): Container {
    const { epoch } = speaker;
    const there = this.#containers.get(key);
    if (there && there.epoch > epoch)
      throw new Fault("fenced", { sandboxKey: key, epoch, highestEpoch: there.epoch });
    if (there && there.epoch < epoch) there.adopt(speaker);
    const container = there ?? new Container(this.#options, speaker);
    this.#containers.set(key, container);
    return container;
  }

  isParked(key: string): boolean {
    return this.#containers.get(key)?.isParked === true;
  }

  park(key: string, epoch: number): void {
    const there = this.#containers.get(key);
    if (there?.epoch === epoch) there.park();
  }

  /** Only the epoch that opened it may: one with a lower epoch leaves it alone. */
  remove(key: string, epoch = Number.POSITIVE_INFINITY): void {
    const there = this.#containers.get(key);
    if (!there || there.epoch > epoch) return;
    there.remove();
    this.#containers.delete(key);
  }
}
