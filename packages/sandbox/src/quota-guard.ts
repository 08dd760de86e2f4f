import {
  FileRefusal,
  type Outcome,
  quotaText,
  type SandboxLimits,
  type WorkspaceUsage,
} from "@berth/protocol";

export type QuotaExceeded = Extract<Outcome, { kind: "quota-exceeded" }>;

/** A command that fills the workspace is looked at this soon, then at `pollMs`. */
const firstLookMs = 150;
const pollMs = 400;
/** A walk may take at most this share of the time between two, so that a large workspace does not eat a core. */
const walkShare = 10;
/** A measurement this old still counts for a write although commands ran since. */
const freshMs = 1_000;

type Watcher = (usage: WorkspaceUsage, exceeded: QuotaExceeded | undefined) => void;

interface Measured {
  readonly usage: WorkspaceUsage;
  readonly atMs: number;
}

/**
 * Keeps a workspace within its limits: tells each write how much room is left, and watches while commands run.
 *
 * A command is stopped only when the workspace is over its limit and larger than when the command began, so that a full
 * workspace can still be cleaned. It can pass the limit by what the disk takes in about half a second; only a quota of
 * the filesystem itself would be exact.
 */
export class QuotaGuard {
  readonly #limits: SandboxLimits;
  readonly #measure: () => Promise<WorkspaceUsage>;
  #last: Measured | undefined;
  /** Something ran since the last measurement began. */
  #dirty = true;
  #measuring: Promise<WorkspaceUsage> | undefined;
  readonly #watchers = new Set<Watcher>();
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: SandboxLimits, measure: () => Promise<WorkspaceUsage>) {
    this.#limits = limits;
    this.#measure = measure;
  }

  /** Bytes a write may add. Throws `quota` when there is no room for another file. */
  async budget(): Promise<number> {
    const last = this.#last;
    const known =
      last && !last.usage.partial && (!this.#dirty || performance.now() - last.atMs < freshMs)
        ? last.usage
        : await this.#measured();
    if (known.entries >= this.#limits.workspaceEntries) {
      throw new FileRefusal(
        "quota",
        quotaText({ limit: this.#limits.workspaceEntries, used: known.entries, unit: "entries" }),
      );
    }
    return Math.max(0, this.#limits.workspaceBytes - known.bytes);
  }

  /** A write took place; counted until the next walk. */
  wrote(bytes: number): void {
    if (!this.#last) return;
    const { usage, atMs } = this.#last;
    this.#last = { usage: { ...usage, bytes: usage.bytes + bytes, entries: usage.entries + 1 }, atMs };
  }

  /** Removals and moves make room; forget what was known. */
  changed(): void {
    this.#dirty = true;
    this.#last = undefined;
  }

  refusal(attemptedBytes: number): FileRefusal {
    const { workspaceBytes } = this.#limits;
    const used = this.#last?.usage.bytes ?? 0;
    const text = quotaText({ limit: workspaceBytes, used, unit: "bytes" });
    return new FileRefusal("quota", `${text}, attempted ${attemptedBytes} bytes more`);
  }

  /** Calls back once, at most, if the workspace passes its limits before the returned function is called. */
  watch(onExceeded: (exceeded: QuotaExceeded) => void): () => void {
    this.#dirty = true;
    let before = this.#last?.usage;
    const watcher: Watcher = (usage, exceeded) => {
      // Nothing was known when the command began: its first look is the measure, or a full workspace could not be cleaned.
      before ??= usage;
      if (exceeded === undefined) return;
      if (exceeded.used <= (exceeded.unit === "bytes" ? before.bytes : before.entries)) return;
      this.#watchers.delete(watcher);
      onExceeded(exceeded);
    };
    this.#watchers.add(watcher);
    this.#timer ??= this.#schedule(firstLookMs);
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.#stopTimer();
    };
  }

  stop(): void {
    this.#watchers.clear();
    this.#stopTimer();
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #schedule(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => void this.#look(), delayMs);
  }

  async #look(): Promise<void> {
    const startedMs = performance.now();
    const usage = await this.#measured().catch(() => undefined);
    if (usage) for (const watcher of [...this.#watchers]) watcher(usage, this.#exceeded(usage));
    const tookMs = performance.now() - startedMs;
    this.#timer = this.#watchers.size > 0 ? this.#schedule(Math.max(pollMs, tookMs * walkShare)) : undefined;
  }

  #measured(): Promise<WorkspaceUsage> {
    this.#measuring ??= this.#measureOnce().finally(() => {
      this.#measuring = undefined;
    });
    return this.#measuring;
  }

  async #measureOnce(): Promise<WorkspaceUsage> {
    this.#dirty = this.#watchers.size > 0;
    const usage = await this.#measure();
    this.#last = { usage, atMs: performance.now() };
    return usage;
  }

  #exceeded(usage: WorkspaceUsage): QuotaExceeded | undefined {
    const { workspaceBytes, workspaceEntries } = this.#limits;
    if (usage.bytes > workspaceBytes) {
      return { kind: "quota-exceeded", limit: workspaceBytes, used: usage.bytes, unit: "bytes" };
    }
    if (usage.entries > workspaceEntries) {
      return { kind: "quota-exceeded", limit: workspaceEntries, used: usage.entries, unit: "entries" };
    }
    return undefined;
  }
}
