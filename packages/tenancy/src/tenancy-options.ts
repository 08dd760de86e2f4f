import type { SandboxKey } from "@berth/protocol";

/** What a profile may set. */
export interface TenancyBounds {
  /** Jobs of different sessions that run at once. */
  readonly parallel: number;
  /** Without work for this long, the sandbox is given up; 0: never. */
  readonly idleMs: number;
  /** After being held for this long, the sandbox is given up as soon as it has no work; 0: never. */
  readonly maxAgeMs: number;
}

export interface TenancyOptions extends TenancyBounds {
  readonly key: SandboxKey;
  readonly epoch: number;
  readonly leaseMs: number;
  /** When the lease was asked for, by the injected clock: the answer may have taken long. */
  readonly takenAtMs: number;
  /** Jobs that are taken ahead and wait here for their session. Beyond them, only jobs of other sessions are taken. */
  readonly parkedMost: number;
  /** What happens to jobs while no worker can start their sandbox, for reasons that may pass. */
  readonly onNoSandbox: "wait" | "refuse";
  /**
   * The sandbox is closed before the lease is released: the next holder may be on another host that sees the same files, and what the
   * tenant left running would run beside its commands.
   */
  readonly closesFirst: boolean;
  /** A sandbox that is given up keeps its container, with nothing running in it, for its next holder on this host. */
  readonly parks: boolean;
  /** Whether the container is removed when the worker stops. */
  readonly removeOnStop: boolean;
}

/**
 * How a tenancy ended. `handed-back`: its queue still has jobs, and the sandbox should be offered again. `no-sandbox`: the same, because
 * this worker could not start it.
 */
export type TenancyEnd = "released" | "handed-back" | "no-sandbox" | "fenced";
