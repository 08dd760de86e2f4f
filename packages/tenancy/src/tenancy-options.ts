import type { SandboxKey } from "@berth/protocol";

export interface TenancyOptions {
  readonly key: SandboxKey;
  readonly epoch: number;
  readonly leaseMs: number;
  /** By the clock handed in, before the lease was asked for: the answer may have taken long. */
  readonly takenAtMs: number;
  /** Jobs of different sessions that run at once. */
  readonly parallel: number;
  /** Jobs that are taken ahead and wait here for their session. Beyond them, only jobs of other sessions are taken. */
  readonly parkedMost: number;
  /** Without work for this long, the sandbox is given up; 0: never. */
  readonly idleMs: number;
  /** Held for this long, it is given up as soon as it has no work; 0: never. */
  readonly maxAgeMs: number;
  /** What becomes of jobs when no worker can start their sandbox, for reasons that may pass. */
  readonly onNoSandbox: "wait" | "refuse";
  /**
   * The sandbox is closed before the lease is released: the next holder may be on another host that sees the same files, and what the
   * tenant left running would run beside its commands.
   */
  readonly closesFirst: boolean;
  /** Whether the container goes when the tenancy ends by order of its worker. */
  readonly removeOnStop: boolean;
}

/**
 * How a tenancy ended. `handed-back`: its queue still has jobs, and the sandbox should be offered again. `no-sandbox`: the same,
 * and no sandbox could be had here.
 */
export type TenancyEnd = "released" | "handed-back" | "no-sandbox" | "fenced";
