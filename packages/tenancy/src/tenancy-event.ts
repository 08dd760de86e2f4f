import type { DeadReason, EgressUse, SandboxKey } from "@berth/protocol";
import type { AttemptRecord } from "./attempt-record.ts";

/** Events of a worker's sandboxes and jobs. Its log has the same event names. */
export type TenancyEvent =
  | ({ readonly event: "job.finished" } & AttemptRecord)
  | ({ readonly event: "job.retrying"; readonly inMs: number } & AttemptRecord)
  | {
      readonly event: "job.dead-lettered";
      readonly key: SandboxKey;
      readonly jobId: string;
      readonly reason: DeadReason;
    }
  | {
      readonly event: "tenancy.fenced";
      readonly key: SandboxKey;
      readonly epoch: number;
      readonly why: string;
    }
  | {
      readonly event: "tenancy.settled";
      readonly key: SandboxKey;
      readonly lost: number;
      readonly again: number;
      readonly done: number;
    }
  | {
      readonly event: "sandbox.set-up";
      readonly key: SandboxKey;
      readonly ok: boolean;
      readonly how: string;
      readonly wallMs: number;
    }
  | {
      /** What a fresh container has of a peer's files. */
      readonly event: "team.copied";
      readonly key: SandboxKey;
      readonly peer: string;
      readonly entries: number;
      readonly bytes: number;
      readonly leftOut: number;
      readonly cut: boolean;
    }
  | {
      readonly event: "sandbox.opened";
      readonly key: SandboxKey;
      readonly how: string;
      readonly link: "unix" | "stdio";
      readonly ms: number;
    }
  /** Its holder gives it up: the container is removed, parked for the next holder, or left to this worker's next process. */
  | {
      readonly event: "sandbox.closed";
      readonly key: SandboxKey;
      readonly how: "removed" | "parked" | "left";
    }
  /** A parked container was removed. */
  | { readonly event: "sandbox.evicted"; readonly key: SandboxKey }
  /** Sandboxes were unused for longer than the operator allows, and clean-up of them begins. */
  | { readonly event: "pruning.begun"; readonly sandboxes: number; readonly unusedMs: number }
  | {
      readonly event: "pruning.ended";
      readonly ordered: number;
      /** Their jobs were not accepted: the tenant is paused, or has as many jobs as it may. */
      readonly left: number;
    }
  /** A job was submitted to destroy a sandbox that was unused for too long. */
  | { readonly event: "sandbox.pruned"; readonly key: SandboxKey }
  /** Its profile changed: the container is removed, and the next job gets one of the new profile. */
  | { readonly event: "sandbox.rebuilt"; readonly key: SandboxKey }
  /** An existing container could not be adopted, or had ended: it is removed, and a fresh one is started. */
  | { readonly event: "sandbox.replaced"; readonly key: SandboxKey; readonly why: string }
  | {
      /** Output of a job looked like a key. The event does not contain it. */
      readonly event: "job.leaked";
      readonly key: SandboxKey;
      readonly tenant: string;
      readonly jobId: string;
      readonly kind: string;
      readonly encoding: string;
      readonly fingerprint: string;
      readonly blocked: boolean;
    }
  | ({
      /** What the sandbox sent and received. */
      readonly event: "egress.used";
      readonly key: SandboxKey;
      /** The jobs that ran meanwhile; empty: only background processes ran. */
      readonly jobs: readonly string[];
    } & EgressUse)
  | {
      readonly event: "approval.waiting";
      readonly key: SandboxKey;
      readonly jobId: string;
      readonly tenant: string;
      readonly expiresMs: number;
    }
  | { readonly event: "tenancy.trouble"; readonly key: SandboxKey; readonly message: string };
