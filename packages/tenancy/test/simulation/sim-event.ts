import type { JobResult } from "@berth/protocol";
import type { LeaseModel, SimHolding } from "./lease-model.ts";
import type { PlantedBug } from "./planted-bug.ts";
import type { QueueModel } from "./queue-model.ts";
import type { Rules } from "./rules.ts";
import type { VirtualTime } from "./virtual-time.ts";

export type SimEvent =
  | { readonly type: "started"; readonly epoch: number; readonly attempt: number }
  | { readonly type: "output"; readonly text: string; readonly part: string }
  | { readonly type: "artifact"; readonly id: string; readonly part: string }
  | { readonly type: "retrying"; readonly attempt: number; readonly part: string }
  | { readonly type: "finished"; readonly result: JobResult };

export interface JobOf {
  readonly key: string;
  readonly jobId: string;
  readonly attempt: number;
}

export interface Beginning extends JobOf, SimHolding {
  readonly queuedId: string;
  readonly before: readonly string[];
  readonly notAfterMs: number;
}

export interface SimPublication extends JobOf, SimHolding {
  readonly event: SimEvent;
  /** The attempt is out of its queue in the same step. */
  readonly leaves?: boolean;
}

export interface EventsModelParts {
  readonly time: VirtualTime;
  readonly leases: LeaseModel;
  readonly rules: Rules;
  readonly queueOf: (key: string) => QueueModel;
  readonly isScheduled: (jobId: string, attempt: number) => boolean;
  readonly bug?: PlantedBug | undefined;
}

export interface Unfinished {
  readonly key: string;
  /** The last attempt that was added. */
  readonly added: number;
  readonly sinceMs: number;
}
