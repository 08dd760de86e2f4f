import {
  capOf,
  FileRefusal,
  isFault,
  type Outcome,
  quotaText,
  type SandboxLimits,
  type SandboxProfile,
  type WorkspaceUsage,
} from "@berth/protocol";
import type { Room } from "./bulk.ts";

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
/**
 * Measurements in a row that may miss something while commands run: a build that removes directories makes a walk miss some. After that
 * many, what the whole disk took meanwhile counts as the workspace's.
 */
const partialsAllowed = 8;

/**
 * A file system that counts allocates for itself after a command has written. Far below what a tenant gains by, since it has a limit
 * of its own.
 */
const countedSlackBytes = 1024 * 1024;

const nothing: WorkspaceUsage = { bytes: 0, entries: 0, unlinkedBytes: 0, partial: false };

export interface QuotaHooks {
  /** Whether the host's disk is so full that nothing may grow, for any quota. */
  readonly low: () => Promise<QuotaExceeded | undefined>;
  /** Whether there is a container in which anything could be writing. Looking must not start one. */
  readonly alive: () => boolean;
  readonly measure: () => Promise<WorkspaceUsage>;
  /** What the workspace's file system holds in all, of everybody. */
  readonly disk: () => Promise<DiskUsage>;
  /** The file system counts: measuring costs nothing. */
  readonly isCounted: () => boolean;
  /** Nothing that is being watched grew, yet the workspace is over its limit and growing: it is what was left in the background. */
  readonly onBackgroundGrowth: () => void;
  /** The workspace can no longer be measured while commands run. */
  readonly onBlind: () => void;
}

/** Who is held to the workspace's limits: files that jobs write, and commands; or only the former. */
export type QuotaFor = SandboxProfile["quotaFor"];

export interface DiskUsage {
  readonly bytes: number;
  readonly entries: number;
}

/** Where what is missed by later measurements is counted from. */
interface Baseline {
  readonly usage: WorkspaceUsage;
  readonly disk: DiskUsage | undefined;
}

interface Known {
  readonly usage: WorkspaceUsage;
  readonly atMs: number;
  /** Counted by a walk. Writes since then were added, also those that replaced a file and took no room. */
  readonly exact: boolean;
}

interface Watcher {
  readonly before: WorkspaceUsage;
  readonly onExceeded: (exceeded: QuotaExceeded) => void;
}

/**
 * Keeps a workspace within its limits: tells each write how much room is left, and watches whatever may be writing.
 *
 *   resting ──a command begins──▶ watching ──last command ended, measured once more, nothing left behind──▶ resting
 *
 * A command is stopped when the workspace is over its limit and larger than when the command began; one that begins when
 * it is over already may only read and remove. So a full workspace can be cleaned and cannot be filled further. A new guard
 * and a new container are measured before their first command. What was measured counts until a later measurement replaces
 * it; removals only cause one. The limit can be passed by what the disk takes between two looks; only a quota of the
 * filesystem itself would be exact.
 *
 * With `quotaFor: "writes"` commands are measured and not stopped, except by the disk floor: only `reserve` refuses.
 */
export class QuotaGuard {
  readonly #limits: Pick<SandboxLimits, "workspaceBytes" | "workspaceEntries">;
  readonly #hooks: QuotaHooks;
  readonly #quotaFor: QuotaFor;
  readonly #watchers = new Set<Watcher>();
  #last: Known | undefined;
  /** `#last` may be too small: something ran that was not measured afterwards. */
  #unmeasured = true;
  /** Something may have written since the last measurement began. */
  #dirty = true;
  #background = false;
  #reservedBytes = 0;
  #failures = 0;
  #partials = 0;
  #baseline: Baseline | undefined;
  #measuring: Promise<WorkspaceUsage> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(limits: SandboxLimits, hooks: QuotaHooks, quotaFor: QuotaFor = "all") {
    const { workspaceBytes, workspaceEntries } = limits;
    this.#limits = { workspaceBytes: capOf(workspaceBytes), workspaceEntries: capOf(workspaceEntries) };
    this.#hooks = hooks;
    this.#quotaFor = quotaFor;
  }

  /** Room for a write of `bytes`, kept from other writes until `release`. Throws `quota` when not even an entry fits. */
  async reserve(bytes: number): Promise<Room & { readonly release: () => void }> {
    const low = bytes > 0 ? await this.#hooks.low() : undefined;
    if (low) throw new FileRefusal("no-space", quotaText(low));
    const known = await this.#known(bytes);
    const { workspaceBytes, workspaceEntries } = this.#limits;
    if (known.entries >= workspaceEntries) {
      throw new FileRefusal(
        "quota",
        quotaText({ limit: workspaceEntries, used: known.entries, unit: "entries" }),
      );
    }
    const left = Math.max(0, workspaceBytes - known.bytes - this.#reservedBytes);
    const budgetBytes = Math.min(left, Number.MAX_SAFE_INTEGER);
    this.#reservedBytes += bytes;
    let released = false;
    return {
      budgetBytes,
      budgetEntries: workspaceEntries - known.entries,
      release: () => {
        if (!released) this.#reservedBytes -= bytes;
        released = true;
      },
    };
  }

  /** A write took place; counted until the next walk. */
  wrote(bytes: number, entries = 1): void {
    if (!this.#last) return;
    const { usage, atMs } = this.#last;
    this.#last = {
      usage: { ...usage, bytes: usage.bytes + bytes, entries: usage.entries + entries },
      atMs,
      exact: false,
    };
  }

  /** Removals and moves may have made room: what was known is the most that there can be. */
  changed(): void {
    this.#dirty = true;
  }

  /**
   * Bytes as last measured, with writes since; undefined before the first time. If something may have changed since and nothing is
   * being watched, it is measured now for the next call.
   */
  get lastBytes(): number | undefined {
    const isResting = this.#timer === undefined && !this.#stopped;
    if (isResting && (this.#dirty || this.#unmeasured) && this.#hooks.alive())
      this.#measured().catch(() => {});
    return this.#last?.usage.bytes;
  }

  refusal(attemptedBytes: number): FileRefusal {
    const { workspaceBytes } = this.#limits;
    const text = quotaText({ limit: workspaceBytes, used: this.#last?.usage.bytes ?? 0, unit: "bytes" });
    return new FileRefusal("quota", `${text}, attempted ${attemptedBytes} bytes more`);
  }

  /**
   * By how much a command that begins now finds the workspace over its limits. Measures if nothing is known, and if it was
   * over and may no longer be; a workspace that is known to be below its limits costs nothing.
   */
  async full(): Promise<QuotaExceeded | undefined> {
    const full = this.#quotaFor === "all" ? await this.#fullQuota() : undefined;
    return full ?? (await this.#hooks.low());
  }

  async #fullQuota(): Promise<QuotaExceeded | undefined> {
    // What an earlier command wrote just before it ended is then not taken for this one's.
    if (this.#hooks.isCounted()) return this.#exceeded(await this.#measured());
    const last = this.#unmeasured ? undefined : this.#last;
    if (!last) return this.#exceeded(await this.#measuredFirst());
    const known = this.#exceeded(last.usage);
    return known && !this.#isSure(last) ? this.#exceeded(await this.#measured()) : known;
  }

  /** Calls back once, at most, if the workspace passes its limits before the returned function is called. */
  watch(onExceeded: (exceeded: QuotaExceeded) => void): (left: { readonly background: boolean }) => void {
    const watcher: Watcher = { before: this.#last?.usage ?? nothing, onExceeded };
    this.#watchers.add(watcher);
    this.#dirty = true;
    this.#timer ??= this.#schedule(firstLookMs);
    return ({ background }) => {
      this.#watchers.delete(watcher);
      this.#background ||= background;
    };
  }

  /** The container is a fresh one: nothing runs in it. What ran in the old one was not measured to its end. */
  restarted(): void {
    this.#background = false;
    this.#failures = 0;
    this.#unmeasured = true;
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
    if (!last || this.#unmeasured || last.usage.partial) return this.#measured();
    const { bytes: used, entries } = last.usage;
    const fits =
      used + this.#reservedBytes + bytes <= this.#limits.workspaceBytes &&
      entries < this.#limits.workspaceEntries;
    const isGoodEnough = fits ? !this.#dirty || performance.now() - last.atMs < freshMs : this.#isSure(last);
    return isGoodEnough ? last.usage : this.#measured();
  }

  #isSure(last: Known): boolean {
    return last.exact && !this.#dirty;
  }

  /** The first walk of a large workspace reads the disk and may take too long; the next finds it in memory. */
  async #measuredFirst(): Promise<WorkspaceUsage> {
    try {
      return await this.#measured();
    } catch (error) {
      if (!isFault(error, "operation-timeout")) throw error;
      return this.#measured();
    }
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
      const disk = await this.#hooks.disk().catch(() => undefined);
      const usage = this.#atLeast(await this.#measured(), disk);
      this.#failures = 0;
      this.#judge(usage, earlier, await this.#hooks.low());
    } catch {
      this.#failures++;
      if (this.#failures >= failuresAllowed && (this.#watchers.size > 0 || this.#background))
        this.#hooks.onBlind();
    }
    this.#timer = undefined;
    // What others take while nothing runs here is never counted.
    if (this.#watchers.size === 0 && !this.#background) this.#baseline = undefined;
    if (this.#stopped || (this.#watchers.size === 0 && !this.#dirty && !this.#background)) return;
    if (this.#watchers.size === 0 && this.#failures >= failuresAllowed) return;
    const pauseMs = Math.max(pollMs, (performance.now() - startedMs) * walkShare);
    this.#timer = this.#schedule(Math.min(pauseMs, maxPauseMs));
  }

  /** A tree that is moved about, or lies too deep to be named, is missed. The disk has it all the same. */
  #atLeast(usage: WorkspaceUsage, disk: DiskUsage | undefined): WorkspaceUsage {
    if (!usage.partial || this.#baseline === undefined) {
      this.#partials = 0;
      this.#baseline = { usage, disk };
      return usage;
    }
    const { usage: before, disk: then } = this.#baseline;
    if (++this.#partials < partialsAllowed || !disk || !then) return usage;
    return {
      ...usage,
      bytes: Math.max(usage.bytes, before.bytes + disk.bytes - then.bytes),
      entries: Math.max(usage.entries, before.entries + disk.entries - then.entries),
    };
  }

  #judge(usage: WorkspaceUsage, earlier: WorkspaceUsage | undefined, low: QuotaExceeded | undefined): void {
    const exceeded = (this.#quotaFor === "all" ? this.#exceeded(usage) : undefined) ?? low;
    const slackBytes = this.#hooks.isCounted() ? countedSlackBytes : 0;
    const grewSince = (before: WorkspaceUsage) =>
      exceeded !== undefined &&
      (exceeded.unit === "entries"
        ? usage.entries > before.entries
        : usage.bytes > before.bytes + slackBytes);
    for (const watcher of [...this.#watchers]) {
      // What it wrote while the disk had room is no reason to stop it.
      const before = exceeded?.unit === "disk" ? (earlier ?? watcher.before) : watcher.before;
      if (exceeded === undefined || !grewSince(before)) continue;
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
      this.#last = { usage, atMs: performance.now(), exact: true };
      this.#unmeasured = false;
      return usage;
    } catch (error) {
      this.#dirty = true;
      this.#unmeasured = true;
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
