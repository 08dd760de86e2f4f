import { Fault } from "@berth/protocol";
import type { Random } from "./random.ts";
import type { Command, Rules } from "./rules.ts";
import type { CommandPlan } from "./sim-job.ts";
import type { SimProcess } from "./sim-process.ts";
import type { VirtualTime } from "./virtual-time.ts";

export interface Ears {
  /** Settles when the worker has taken it: then the command may send more. */
  readonly onChunk: (text: string) => Promise<void>;
  readonly onEnd: (how: "exited" | "killed" | "gone") => void;
}

interface Running {
  readonly command: Command;
  readonly ears: Ears;
  readonly speaker: SimProcess;
}

export interface HostOptions {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly rules: Rules;
  readonly leaseMs: number;
}

/** A frame between a worker and init takes this long. */
const frameMs = 1;
/** A worker gives a sign of life this often in a lease. */
const signsInLease = 3;

/**
 * One sandbox's container as init rules it: obeys the highest epoch it has seen, ends everything when its worker gives no sign for a
 * lease's length, and takes commands again when signs come again.
 */
export class Container {
  readonly #options: HostOptions;
  readonly #running = new Set<Running>();
  #epoch: number;
  #speaker: SimProcess;
  #gone = false;
  #stopWatch: (() => void) | undefined;

  constructor(options: HostOptions, epoch: number, speaker: SimProcess) {
    this.#options = options;
    this.#epoch = epoch;
    this.#speaker = speaker;
    this.#listen();
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** The next holder on the same host: what an earlier one left running is ended first. */
  adopt(epoch: number, speaker: SimProcess): void {
    this.#endAll("killed");
    this.#deafen();
    this.#epoch = epoch;
    this.#speaker = speaker;
    this.#listen();
  }

  remove(): void {
    this.#endAll("gone");
    this.#deafen();
    this.#gone = true;
  }

  /** What it gives back ends the command. */
  exec(command: Command, plan: CommandPlan, ears: Ears): () => void {
    const { time, rules } = this.#options;
    const running: Running = { command, ears, speaker: this.#speaker };
    time.after(frameMs, () => {
      if (this.#gone || command.epoch !== this.#epoch) return this.#answer(running, "gone");
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
      speaker.after(frameMs, "io", () => {
        void ears.onChunk(chunk).then(() => this.#goOn(running, plan, said + 1));
      });
    });
  }

  #end(running: Running, how: "exited" | "killed" | "gone"): void {
    if (!this.#running.delete(running)) return;
    this.#options.rules.ends(running.command, how);
    this.#answer(running, how);
  }

  #answer({ ears, speaker }: Running, how: "exited" | "killed" | "gone"): void {
    speaker.after(frameMs, "io", () => ears.onEnd(how));
  }

  #endAll(how: "killed" | "gone"): void {
    for (const running of this.#running) this.#end(running, how);
  }

  #listen(): void {
    this.#speaker.onSilence.add(this.#onSilence);
    this.#speaker.onVoice.add(this.#onVoice);
  }

  #deafen(): void {
    this.#speaker.onSilence.delete(this.#onSilence);
    this.#speaker.onVoice.delete(this.#onVoice);
    this.#stopWatch?.();
  }

  readonly #onSilence = () => {
    const { time, random, leaseMs } = this.#options;
    const sinceMs = random.between(0, leaseMs / signsInLease);
    this.#stopWatch?.();
    this.#stopWatch = time.after(leaseMs - sinceMs, () => this.#endAll("gone"));
  };

  readonly #onVoice = () => this.#stopWatch?.();
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

  open(key: string, epoch: number, speaker: SimProcess): Container {
    const there = this.#containers.get(key);
    if (there && there.epoch > epoch)
      throw new Fault("fenced", { sandboxKey: key, epoch, highestEpoch: there.epoch });
    if (there && there.epoch < epoch) there.adopt(epoch, speaker);
    const container = there ?? new Container(this.#options, epoch, speaker);
    this.#containers.set(key, container);
    return container;
  }

  /** Only the epoch that opened it may: one with a lower epoch leaves it alone. */
  remove(key: string, epoch = Number.POSITIVE_INFINITY): void {
    const there = this.#containers.get(key);
    if (!there || there.epoch > epoch) return;
    there.remove();
    this.#containers.delete(key);
  }
}
