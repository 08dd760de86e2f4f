import type { SimJob } from "./sim-job.ts";
import type { SimProcess } from "./sim-process.ts";
import type { Trace } from "./trace.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** A command inside a sandbox, from its start to its end. */
export interface Command {
  readonly job: SimJob;
  readonly attempt: number;
  readonly index: number;
  readonly epoch: number;
  readonly worker: string;
  readonly process: SimProcess;
}

export interface Violation {
  readonly rule: string;
  readonly detail: string;
  /** What to look for in the trace. */
  readonly about: readonly string[];
}

export interface RulesOptions {
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly leaseMs: number;
  /** Jobs of one sandbox, and of one worker, that may run at once. */
  readonly parallel: number;
  readonly turns: number;
}

/** Notes that a rule is broken. */
export type OnBroken = (rule: string, detail: string, about: readonly string[]) => void;
