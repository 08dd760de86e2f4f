import { Fault } from "@berth/protocol";
import type { Rules } from "./rules.ts";
import type { CommandPlan } from "./sim-job.ts";
import type { SimProcess } from "./sim-process.ts";
import type { Command } from "./violation.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** The worker's callbacks for one command. */
export interface CommandListener {
  /** Settles when the worker has taken the chunk: then the command may send more. */
  readonly onChunk: (text: string) => Promise<void>;
  readonly onEnd: (how: "exited" | "killed" | "gone" | "lease-over") => void;
}

interface Running {
  readonly command: Command;
  readonly listener: CommandListener;
  readonly holder: LinkedHolder;
}

export interface HostOptions {
  readonly time: VirtualTime;
  readonly rules: Rules;
  readonly leaseMs: number;
}

/** A frame between a worker and init takes this long. */
const frameMs = 1;
/** Pings of a worker per lease. */
const pingsInLease = 6;

/** The holder that is linked to a container, and how long it may still act. */
export interface LinkedHolder {
  readonly process: SimProcess;
  readonly epoch: number;
  readonly leftMs: () => number;
}

/**
 * One sandbox's container with its init: obeys the highest epoch that it has seen, ends everything when the lease time of the last ping is
 * over, and takes commands again when pings arrive again.
 */
export class Container {
  readonly #options: HostOptions;
  readonly #running = new Set<Running>();
  #holder: LinkedHolder;
  #gone = false;
  #parked = false;
  #isLeaseOver = false;
  #pingedMs = 0;
  #stopWatch: (() => void) | undefined;

  constructor(options: HostOptions, holder: LinkedHolder) {
    this.#options = options;
    this.#holder = holder;
    this.#keepPinging(holder);
  }

  get isParked(): boolean {
    return this.#parked;
  }

  get epoch(): number {
    return this.#holder.epoch;
  }

  /** Links the next holder on the same host, and first ends what an earlier one left running. */
  adopt(holder: LinkedHolder): void {
    this.#endAll("killed");
    this.#parked = false;
    this.#holder = holder;
    this.#keepPinging(holder);
  }

  /** Ends everything. The container takes commands again from its next holder. */
  park(): void {
    this.#endAll("killed");
    this.#stopWatch?.();
    this.#parked = true;
    this.#isLeaseOver = true;
  }

  remove(): void {
    this.#endAll("gone");
    this.#stopWatch?.();
    this.#gone = true;
  }

  /** The returned function ends the command. */
  exec(command: Command, plan: CommandPlan, listener: CommandListener): () => void {
    const { time, rules } = this.#options;
    const holder = this.#holder;
    const running: Running = { command, listener, holder };
    // A worker whose timers are late sends its ping before its request.
    if (command.epoch === holder.epoch && time.nowMs - this.#pingedMs > this.#pingEveryMs) this.#ping(holder);
    time.after(frameMs, () => {
      if (this.#gone || command.epoch !== this.epoch) return this.#answer(running, "gone");
      if (this.#isLeaseOver) return this.#answer(running, "lease-over");
      this.#running.add(running);
      rules.starts(command);
      this.#goOn(running, plan, 0);
    });
    return () => {
      time.after(frameMs, () => this.#end(running, "killed"));
    };
  }

  #goOn(running: Running, plan: CommandPlan, sent: number): void {
    const { time } = this.#options;
    const stepMs = plan.runMs / (plan.chunks.length + 1);
    time.after(stepMs, () => {
      if (!this.#running.has(running)) return;
      const chunk = plan.chunks[sent];
      if (chunk === undefined) return this.#end(running, "exited");
      const { listener, holder } = running;
      holder.process.after(frameMs, "io", () => {
        void listener.onChunk(chunk).then(() => this.#goOn(running, plan, sent + 1));
      });
    });
  }

  #end(running: Running, how: "exited" | "killed" | "gone"): void {
    if (!this.#running.delete(running)) return;
    this.#options.rules.ends(running.command, how);
    this.#answer(running, how);
  }

  #answer({ listener, holder }: Running, how: Parameters<CommandListener["onEnd"]>[0]): void {
    holder.process.after(frameMs, "io", () => listener.onEnd(how));
  }

  #endAll(how: "killed" | "gone"): void {
    for (const running of this.#running) this.#end(running, how);
  }

  get #pingEveryMs(): number {
    return this.#options.leaseMs / pingsInLease;
  }

  #keepPinging(holder: LinkedHolder): void {
    if (this.#gone || holder !== this.#holder) return;
    this.#ping(holder);
    holder.process.after(this.#pingEveryMs, "timer", () => this.#keepPinging(holder));
  }

  #ping(holder: LinkedHolder): void {
    const { time } = this.#options;
    const leftMs = holder.leftMs();
    this.#pingedMs = time.nowMs;
    time.after(frameMs, () => {
      if (this.#gone || this.#parked || holder !== this.#holder) return;
      this.#isLeaseOver = false;
      this.#stopWatch?.();
      this.#stopWatch = time.after(Math.max(1, leftMs), () => {
        this.#isLeaseOver = true;
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

  open(key: string, holder: LinkedHolder): Container {
    const { epoch } = holder;
    const there = this.#containers.get(key);
    if (there && there.epoch > epoch)
      throw new Fault("fenced", { sandboxKey: key, epoch, highestEpoch: there.epoch });
    if (there && there.epoch < epoch) there.adopt(holder);
    const container = there ?? new Container(this.#options, holder);
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

  /** Only for the epoch that opened it, or a higher one. */
  remove(key: string, epoch = Number.POSITIVE_INFINITY): void {
    const there = this.#containers.get(key);
    if (!there || there.epoch > epoch) return;
    there.remove();
    this.#containers.delete(key);
  }
}
