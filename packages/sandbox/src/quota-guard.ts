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
import type { Growth, Room } from "./bulk.ts";

export type QuotaExceeded = Extract<Outcome, { kind: "quota-exceeded" }>;

/** The first measurement after a command began, and the pause between two while anything may run. */
const firstLookMs = 150;
const pollMs = 400;
/** The pause is ten times as long as a walk took, so that a large workspace does not use up a core; but at most two seconds. */
const walkShare = 10;
const maxPauseMs = 2_000;
/** A write may rely on a measurement that is younger than this, although commands ran since. */
const freshMs = 1_000;
/** Measurements that may fail in a row while commands run. A tenant must gain nothing by preventing them. */
const failuresAllowed = 2;
/**
 * Measurements in a row that may be incomplete while commands run: a walk misses directories that a build removes. After so many, the
 * growth of the whole disk counts as the workspace's.
 */
const partialsAllowed = 8;

/** A file system that counts also counts blocks that it allocates for itself after a write. Growth below this stops no command. */
const countedSlackBytes = 1024 * 1024;

/** What init counts for a directory that it makes: a block, as most file systems take for it. */
export const directoryBytes = 4096;

const nothing: WorkspaceUsage = { bytes: 0, entries: 0, unlinkedBytes: 0, partial: false };

export interface QuotaHooks {
  /** Whether the host's disk is so full that nothing may grow, for any quota. */
  readonly low: () => Promise<QuotaExceeded | undefined>;
  /** Whether there is a container in which a process could write. Must not start one. */
  readonly alive: () => boolean;
  readonly measure: () => Promise<WorkspaceUsage>;
  /** The usage of the workspace's whole file system. */
  readonly disk: () => Promise<DiskUsage>;
  /** The file system counts the usage, so measuring costs nothing. */
  readonly isCounted: () => boolean;
  /** The workspace is over its limit and grows, because of processes that a command left in the background. */
  readonly onBackgroundGrowth: () => void;
  /** The workspace can no longer be measured while commands run. */
  readonly onBlind: () => void;
}

/** Whether the workspace's limits bind commands and the files that jobs write, or only the latter. */
export type QuotaFor = SandboxProfile["quotaFor"];

export interface DiskUsage {
  readonly bytes: number;
  readonly entries: number;
}

/** The last complete measurement. Later incomplete ones are compared with it. */
interface Baseline {
  readonly usage: WorkspaceUsage;
  readonly disk: DiskUsage | undefined;
}

interface Known {
  readonly usage: WorkspaceUsage;
  readonly atMs: number;
  /** False: writes since the measurement were added, also those that replaced a file and took no room. */
  readonly exact: boolean;
}

interface Watcher {
  readonly before: WorkspaceUsage;
  readonly onExceeded: (exceeded: QuotaExceeded) => void;
}

/**
 * Keeps a workspace within its limits: gives each write the room that is left, and watches commands that may write.
 *
 *   resting ──a command begins──▶ watching ──last command ended, measured once more, nothing left behind──▶ resting
 *
 * A command is stopped when the workspace is over its limit and larger than when the command began. A command that begins in a full
 * workspace may only read and remove, so a full workspace can be cleaned and cannot be filled further. A new guard and a new container
 * are measured before their first command. A measurement counts until the next one; a removal causes one. Commands can pass the limit
 * by what the disk takes between two measurements. Only a quota of the file system is exact.
 *
 * With `quotaFor: "writes"` commands are measured and not stopped, except by the disk floor: only `reserve` refuses.
 */
export class QuotaGuard {
  readonly #limits: Pick<SandboxLimits, "workspaceBytes" | "workspaceEntries">;
  readonly #hooks: QuotaHooks;
  readonly #quotaFor: QuotaFor;
  readonly #watchers = new Set<Watcher>();
  #last: Known | undefined;
  /** `#last` may be too small: a command ran that was not measured afterwards. */
  #unmeasured = true;
  /** A command may have written since the last measurement began. */
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

  /** Reserves room for a write of `bytes` until `release`. Throws `quota` when not even an entry fits. */
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

  /** Adds a write to the last measurement, until the next one. */
  wrote(content: number, { made, madeDirectories }: Growth): void {
    if (!this.#last) return;
    const { usage, atMs } = this.#last;
    const bytes = usage.bytes + content + madeDirectories * directoryBytes;
    this.#last = {
      usage: { ...usage, bytes, entries: usage.entries + made },
      atMs,
      exact: false,
    };
  }

  /** A write that failed may have left something, and it is not known how much: the next one measures first. */
  lostCount(): void {
    this.#dirty = true;
    this.#unmeasured = true;
  }

  /** Removals and moves may have made room. The last measurement is now an upper bound. */
  changed(): void {
    this.#dirty = true;
  }

  /**
   * Bytes as last measured, with writes since; undefined before the first time. If they may have changed and no command is watched, they
   * are measured now for the next call.
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
   * The limit that the workspace exceeds before a command begins, if any. Measures if nothing is known, and if it was over and may no
   * longer be. For a workspace that is known to be below its limits nothing is measured.
   */
  async full(): Promise<QuotaExceeded | undefined> {
    const full = this.#quotaFor === "all" ? await this.#fullQuota() : undefined;
    return full ?? (await this.#hooks.low());
  }

  async #fullQuota(): Promise<QuotaExceeded | undefined> {
    // Measured now, so that the last writes of an earlier command do not count as this one's.
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

  /** The container is a fresh one, in which nothing runs. The last writes in the old one were not measured. */
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

  /** A stale measurement is good enough to allow a write, but not to refuse one: commands may have removed files since. */
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
    // The growth of the disk while nothing runs here must not count.
    if (this.#watchers.size === 0 && !this.#background) this.#baseline = undefined;
    if (this.#stopped || (this.#watchers.size === 0 && !this.#dirty && !this.#background)) return;
    if (this.#watchers.size === 0 && this.#failures >= failuresAllowed) return;
    const pauseMs = Math.max(pollMs, (performance.now() - startedMs) * walkShare);
    this.#timer = this.#schedule(Math.min(pauseMs, maxPauseMs));
  }

  /** A walk misses a tree that is moved about, or that lies too deep to be named. The disk's growth shows it. */
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
      // Below the disk floor only growth since the last measurement counts: what it wrote while the disk had room does not stop it.
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
