import type { ArtifactStore, Grants, Shared } from "@berth/ledger";
import type { Epoch, Job, SandboxKey, SetUpReport } from "@berth/protocol";
import type { SandboxOrigin, SnapshotReport } from "@berth/sandbox";
import type { GateOptions } from "./approval-gate.ts";
import type { JobTools } from "./job-tools.ts";
import type { Policy } from "./policy.ts";
import type { SandboxEgress } from "./sandbox-egress.ts";
import type { SandboxSecrets } from "./secrets/sandbox-secrets.ts";
import type { SandboxSnapshots } from "./snapshots/sandbox-snapshots.ts";

export interface OpenedSandbox {
  readonly how: SandboxOrigin["how"];
  readonly link: SandboxOrigin["link"];
  readonly ms: number;
}

/** A leaked key, without the key itself. */
export interface LeakFound {
  readonly tenant: string;
  readonly jobId: string;
  readonly kind: string;
  readonly encoding: string;
  readonly fingerprint: string;
  readonly blocked: boolean;
}

/** What one tenancy's sandbox needs of the worker. */
export interface DriverSandboxOptions {
  readonly key: SandboxKey;
  readonly epoch: Epoch;
  /** The worker's process that holds the sandbox. */
  readonly instance: string;
  readonly leaseMs: number;
  readonly policy: Pick<Policy, "nameOf" | "resolve" | "bare">;
  readonly grants: Pick<Grants, "check" | "peersOf">;
  readonly egress: SandboxEgress;
  /** The pool that the sandbox's first job chose. It never changes. */
  readonly pool: () => Promise<string>;
  readonly secrets: SandboxSecrets;
  /** The output of a job contains what looks like a key. */
  readonly onLeak: (found: LeakFound) => void;
  /** Absent: no artifacts are kept. */
  readonly artifacts?: ArtifactStore | undefined;
  readonly snapshots: SandboxSnapshots;
  /** Throws when this host cannot have the sandbox together with the directories that it shares. */
  readonly tie: (shared: readonly Shared[]) => Promise<void>;
  /** The sandbox runs here. Nothing runs in it before this has returned. */
  readonly onStarted: (opened: OpenedSandbox, signal: AbortSignal) => Promise<void>;
  readonly onStartFailed: (error: unknown) => void;
  /** A peer's files are at /team in a fresh container. */
  readonly onCopied: (peer: string, report: SnapshotReport) => void;
  /** The tenancy gave the container up. Parked: it waits for the sandbox's next holder on this host. */
  readonly onClosed: (how: "removed" | "parked" | "left") => void;
  /** The sandbox's workspace was removed. */
  readonly onDestroyed: () => Promise<void>;
  /** The tenancy gave the sandbox up, and started no container since the workspace was removed. */
  readonly onGone: () => Promise<void>;
  /** The container is replaced because the sandbox's profile changed. */
  readonly onRebuilt: () => void;
  /** The container had ended by itself, and a fresh one was started. */
  readonly onRestarted: () => void;
  /** Asks Redis whether the lease is still this tenancy's. */
  readonly isHeld: () => Promise<boolean>;
  /** Throws unless an administrator has approved the job. */
  readonly approved: (job: Job, options: GateOptions) => Promise<void>;
  /** The custom tools that the job uses. Throws `tool-refused` for a call that the job may not make. */
  readonly tools: (job: Job, profile: string) => Promise<JobTools>;
  /** The profile's set-up command has ended, well or not. */
  readonly onSetUp: (report: SetUpReport) => void;
}
