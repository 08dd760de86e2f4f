import type { DeadReason, EgressUse, SandboxKey } from "@berth/protocol";
import type { AttemptRecord } from "./attempt-record.ts";

/** What a worker reports of its sandboxes and jobs: names of events are the words that stand in its log. */
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
  /** It was not used for long: a job is to destroy it. */
  | { readonly event: "sandbox.pruned"; readonly key: SandboxKey }
  /** Its profile is another now: the container goes, and the next job gets one of the new profile. */
  | { readonly event: "sandbox.rebuilt"; readonly key: SandboxKey }
  /** A container that was found could not be taken up, or had ended: it goes, and a fresh one is started. */
  | { readonly event: "sandbox.replaced"; readonly key: SandboxKey; readonly why: string }
  | {
      /** Output of a job looked like a key, which is not in here. */
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
      /** Those that ran meanwhile; none: what they left in the background. */
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
