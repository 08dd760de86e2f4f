import {
  agentDirectory,
  BoundedWait,
  capOf,
  Fault,
  type SandboxKey,
  type SandboxProfile,
  sharedOwner,
  tenantOf,
  toolsDirectory,
  type WorkspaceUsage,
} from "@berth/protocol";
import type { Link } from "../link.ts";
import type { CallOptions, SharedPath } from "../port.ts";
import { countedUsage } from "./quota/workspace-quotas.ts";
import type { Started } from "./started.ts";
import { unlockWorkspace } from "./workspace.ts";

/** For one walk of the workspace. A million files take about two seconds. */
const measureDeadlineMs = 5_000;

export interface MeasuredSandbox {
  readonly key: SandboxKey;
  readonly profile: SandboxProfile;
  /** The present container, which may be broken. */
  readonly started: () => Started;
  readonly isBroken: () => boolean;
  /** The link to a container that answers. */
  readonly link: (options?: CallOptions) => Promise<Link>;
  /** Aborted when the sandbox stops. */
  readonly signal: AbortSignal;
}

/** Measures a sandbox's workspace, and the directories in it that other sandboxes of the tenant have too. */
export class SandboxUsage {
  readonly #sandbox: MeasuredSandbox;
  readonly #sharedBytes = new Map<SharedPath, number>();
  /** The workspace was measured after the shared directories were. */
  #isSharedStale = false;

  constructor(sandbox: MeasuredSandbox) {
    this.#sandbox = sandbox;
  }

  /** The file system counts bytes and files. It does not count shared directories with the workspace: only a walk does. */
  get isCounted(): boolean {
    const { quota } = this.#sandbox.started().origin;
    const { agentAccess, toolsAccess } = this.#sandbox.profile;
    return (quota === "project" || quota === "image") && agentAccess !== "rw" && toolsAccess !== "rw";
  }

  /** Without the quota's deadline and repairs. */
  async usage(options: CallOptions): Promise<WorkspaceUsage> {
    const link = await this.#sandbox.link(options);
    return this.#counted() ?? link.usage({ ...options, maxEntries: this.#maxEntries });
  }

  /** For the quota. Gives the workspace back permissions that its tenant took away, if it cannot be measured without. */
  async measure(): Promise<WorkspaceUsage> {
    const counted = this.#counted();
    if (counted !== undefined) return counted;
    const { signal: lifetime } = this.#sandbox;
    using wait = new BoundedWait().endWith(lifetime).endAfter(measureDeadlineMs);
    const { signal } = wait;
    try {
      return await this.#walk(signal).catch(async (error: unknown) => {
        const wasLocked = await unlockWorkspace(this.#sandbox.started().workspacePath).catch(() => false);
        if (!wasLocked) throw error;
        return this.#walk(signal);
      });
    } catch (error) {
      if (!wait.isLate || lifetime.aborted) throw error;
      const context = { operation: "measuring the workspace", deadlineMs: measureDeadlineMs };
      throw new Fault("operation-timeout", context, { cause: error });
    }
  }

  /** As last measured. A stale measurement is repeated for the next call. */
  get lastShared(): ReadonlyMap<SharedPath, number> {
    // Not within the quota's own walk, which a second walk would delay.
    if (this.#isSharedStale) this.measureShared({ signal: this.#sandbox.signal }).catch(() => {});
    return this.#sharedBytes;
  }

  async measureShared({ signal }: CallOptions = {}): Promise<void> {
    this.#isSharedStale = false;
    if (this.#sandbox.isBroken()) return;
    const { link } = this.#sandbox.started();
    for (const path of this.#sharedPaths) {
      const { bytes } = await link.usage({ path, maxEntries: this.#maxEntries, signal });
      this.#sharedBytes.set(path, bytes);
    }
  }

  async #walk(signal: AbortSignal): Promise<WorkspaceUsage> {
    // A container that is being set up is measured, too. `link` would wait for the set-up.
    const link = this.#sandbox.isBroken() ? await this.#sandbox.link() : this.#sandbox.started().link;
    const usage = await link.usage({ maxEntries: this.#maxEntries, signal });
    this.#isSharedStale = true;
    return usage;
  }

  #counted(): Promise<WorkspaceUsage> | undefined {
    const { origin, workspacePath } = this.#sandbox.started();
    return this.isCounted ? countedUsage(workspacePath, origin.quota === "image") : undefined;
  }

  /** The shared directories that the sandbox may write: it cannot make a read-only one grow. */
  get #sharedPaths(): readonly SharedPath[] {
    const { key, profile } = this.#sandbox;
    if (tenantOf(key) === sharedOwner) return [];
    return [
      ...(profile.agentAccess === "rw" ? ([agentDirectory] as const) : []),
      ...(profile.toolsAccess === "rw" ? ([toolsDirectory] as const) : []),
    ];
  }

  /** Bound of a walk: one entry more than the limit shows that the limit is passed. */
  get #maxEntries(): number {
    return Math.min(capOf(this.#sandbox.profile.limits.workspaceEntries) + 1, Number.MAX_SAFE_INTEGER);
  }
}
