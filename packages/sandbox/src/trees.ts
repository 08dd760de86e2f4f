import type { SandboxKey, SandboxProfile, SnapshotMethod } from "@berth/protocol";
import type { CallOptions } from "./port.ts";

/** The sandbox whose files they are, and the profile of containers that touch them. */
export interface TreeOwner {
  readonly key: SandboxKey;
  readonly profile: SandboxProfile;
}

/** What a snapshot was made of. */
export interface TakenTree {
  readonly method: SnapshotMethod;
  readonly entries: number;
  readonly bytes: number;
}

export interface TreeOnDisk {
  readonly id: string;
  /** When it got its present name. */
  readonly madeAtMs: number;
}

/**
 * Whole workspaces on this host: frozen copies of them, and new ones made of such a copy. A sandbox has no container while its
 * workspace is taken, filled or exchanged.
 */
export interface Trees {
  /** Copies the workspace as the snapshot `id`, which is there as a whole or not at all. `measured`: what is in the workspace. */
  take(
    owner: TreeOwner,
    id: string,
    measured: { readonly entries: number; readonly bytes: number },
    options: CallOptions,
  ): Promise<TakenTree>;
  /** Replaces the workspace with a copy of the snapshot, in one step. `check` is called right before; it throws when the lease is over. */
  restore(
    owner: TreeOwner,
    id: string,
    options: CallOptions & { readonly check: () => void },
  ): Promise<SnapshotMethod>;
  /** Whether there is a workspace, and what it was made of. Changes nothing. */
  originOf(key: SandboxKey): Promise<TreeOrigin>;
  /** Makes the workspace of the snapshot. Refused where there is one, even an empty one: its container would keep the old directory. */
  fork(
    owner: TreeOwner,
    snapshot: { readonly id: string; readonly name: string },
    options: CallOptions,
  ): Promise<void>;
  /** Idempotent. */
  remove(id: string, profile: SandboxProfile, options: CallOptions): Promise<void>;
  list(): Promise<readonly TreeOnDisk[]>;
  /** Removes trees that workers left when they died in the middle of an operation. */
  removeLeftovers(profile: SandboxProfile, options: CallOptions): Promise<void>;
}

/** `own`: it was not made of a snapshot. It may be empty. */
export type TreeOrigin =
  | { readonly kind: "absent" }
  | { readonly kind: "own" }
  | { readonly kind: "fork"; readonly of: string };
