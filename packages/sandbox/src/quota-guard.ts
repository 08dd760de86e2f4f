import {
  FileRefusal,
  type Outcome,
  quotaText,
  type SandboxLimits,
  type WorkspaceUsage,
} from "@berth/protocol";

export type QuotaExceeded = Extract<Outcome, { kind: "quota-exceeded" }>;

/** The first look after a command began, and the pause between two while anything may run. */
const firstLookMs = 150;
const pollMs = 400;
/** A walk may take at most a tenth of the time, so that a large workspace does not eat a core; but not be put off for longer than this. */
const walkShare = 10;
const maxPauseMs = 2_000;
/** A measurement this old still counts for a write although commands ran since. */
const freshMs = 1_000;
/** Measurements that may fail in a row while commands run. A tenant that keeps us from measuring must not win by it. */
const failuresAllowed = 2;

export interface QuotaHooks {
  /** Whether there is a container in which anything could be writing. Looking must not start one. */
  readonly alive: () => boolean;
  readonly measure: () => Promise<WorkspaceUsage>;
  /** Nothing that is being watched grew, yet the workspace is over its limit and growing: it is what was left in the background. */
  readonly onBackgroundGrowth: () => void;
  /** The workspace can no longer be measured while commands run. */
  readonly onBlind: () => void;
}

interface Watcher {
  before: WorkspaceUsage | undefined;
  readonly onExceeded: (exceeded: QuotaExceeded) => void;
}

/**
 * Keeps a workspace within its limits: tells each write how much room is left, and watches whatever may be writing.
 *
 *   resting ──a command begins──▶ watching ──last command ended, measured once more, nothing left behind──▶ resting
 *
 * A command is stopped when the workspace is over its limit and larger than when the command began; one that begins when
 * it is over already may only read and remove. So a full workspace can be cleaned and cannot be filled further. It can be
 * passed by what the disk takes between two looks; only a quota of the filesystem itself would be exact.
 */
export class QuotaGuard {
  readonly #limits: SandboxLimits;
  readonly #hooks: QuotaHooks;
  readonly #watchers = new Set<Watcher>();
  #last: { readonly usage: WorkspaceUsage; readonly atMs: number } | undefined;
  /** Something may have written since the last measurement began. */
  #dirty = true;
  #background = false;
  #reservedBytes = 0;
  #failures = 0;
  #measuring: Promise<WorkspaceUsage> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(limits: SandboxLimits, hooks: QuotaHooks) {
    this.#limits = limits;
    this.#hooks = hooks;
  }

  /** Room for a write of `bytes`, kept from other writes until `release`. Throws `quota` when not even an entry fits. */
  async reserve(bytes: number): Promise<{ readonly budgetBytes: number; readonly release: () => void }> {
    const known = await this.#known(bytes);
    const { workspaceBytes, workspaceEntries } = this.#limits;
    if (known.entries >= workspaceEntries) {
      throw new FileRefusal(
        "quota",
        quotaText({ limit: workspaceEntries, used: known.entries, unit: "entries" }),
      );
    }
    const budgetBytes = Math.max(0, workspaceBytes - known.bytes - this.#reservedBytes);
    this.#reservedBytes += bytes;
    let released = false;
    return {
      budgetBytes,
      release: () => {
        if (!released) this.#reservedBytes -= bytes;
        released = true;
      },
    };
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
    const text = quotaText({ limit: workspaceBytes, used: this.#last?.usage.bytes ?? 0, unit: "bytes" });
    return new FileRefusal("quota", `${text}, attempted ${attemptedBytes} bytes more`);
  }

  /** By how much a command that begins now finds the workspace over its limits. Measures again only if it was. */
  async full(): Promise<QuotaExceeded | undefined> {
    const known = this.#last && this.#exceeded(this.#last.usage);
    return known && this.#dirty ? this.#exceeded(await this.#measured()) : known;
  }

  /** Calls back once, at most, if the workspace passes its limits before the returned function is called. */
  watch(onExceeded: (exceeded: QuotaExceeded) => void): (left: { readonly background: boolean }) => void {
    const watcher: Watcher = { before: this.#last?.usage, onExceeded };
    this.#watchers.add(watcher);
    this.#dirty = true;
    this.#timer ??= this.#schedule(firstLookMs);
    return ({ background }) => {
      this.#watchers.delete(watcher);
      this.#background ||= background;
    };
  }

  /** The container is a fresh one: nothing runs in it. */
  restarted(): void {
    this.#background = false;
    this.#failures = 0;
    this.changed();
  }

  stop(): void {
    this.#stopped = true;
    this.#watchers.clear();
    clearTimeout(this.#timer);
  }

  /** A measurement that commands may have made stale is good enough to allow, not to refuse: they may have removed. */
  async #known(bytes: number): Promise<WorkspaceUsage> {
    const last = this.#last;
    if (!last || last.usage.partial) return this.#measured();
    const { bytes: used, entries } = last.usage;
    const fits =
      used + this.#reservedBytes + bytes <= this.#limits.workspaceBytes &&
      entries < this.#limits.workspaceEntries;
    return !this.#dirty || (fits && performance.now() - last.atMs < freshMs) ? last.usage : this.#measured();
  }

  #schedule(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => void this.#look(), delayMs);
  }

  async #look(): Promise<void> {
    if (!this.#hooks.alive()) {
      this.#timer = undefined;
      return;
    }
    const startedMs = performance.now();
    const earlier = this.#last?.usage;
    try {
      const usage = await this.#measured();
      this.#failures = 0;
      this.#judge(usage, earlier);
    } catch {
      this.#failures++;
      if (this.#failures >= failuresAllowed && (this.#watchers.size > 0 || this.#background))
        this.#hooks.onBlind();
    }
    this.#timer = undefined;
    if (this.#stopped || (this.#watchers.size === 0 && !this.#dirty && !this.#background)) return;
    if (this.#watchers.size === 0 && this.#failures >= failuresAllowed) return;
    const pauseMs = Math.max(pollMs, (performance.now() - startedMs) * walkShare);
    this.#timer = this.#schedule(Math.min(pauseMs, maxPauseMs));
  }

  #judge(usage: WorkspaceUsage, earlier: WorkspaceUsage | undefined): void {
    const exceeded = this.#exceeded(usage);
    const grewSince = (before: WorkspaceUsage) =>
      exceeded !== undefined && exceeded.used > (exceeded.unit === "bytes" ? before.bytes : before.entries);
    for (const watcher of [...this.#watchers]) {
      // Nothing was known when the command began: its first look is the measure, or a full workspace could not be cleaned.
      watcher.before ??= usage;
      if (exceeded === undefined || !grewSince(watcher.before)) continue;
      this.#watchers.delete(watcher);
      watcher.onExceeded(exceeded);
    }
    if (this.#background && earlier && grewSince(earlier)) this.#hooks.onBackgroundGrowth();
  }

  #measured(): Promise<WorkspaceUsage> {
    this.#measuring ??= this.#measureOnce().finally(() => {
      this.#measuring = undefined;
    });
    return this.#measuring;
  }

  async #measureOnce(): Promise<WorkspaceUsage> {
    this.#dirty = this.#watchers.size > 0;
    try {
      const usage = await this.#hooks.measure();
      this.#last = { usage, atMs: performance.now() };
      return usage;
    } catch (error) {
      this.#dirty = true;
      throw error;
    }
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
