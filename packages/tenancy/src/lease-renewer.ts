import { writesRefusedMs } from "@berth/protocol";
import type { Clock, LeasePort } from "./tenancy-ports.ts";

export interface LeaseRenewerOptions {
  readonly leaseMs: number;
  /** When the lease was asked for, by the same clock. */
  readonly takenAtMs: number;
  readonly clock: Clock;
  readonly lease: LeasePort;
  /** Called once, when the lease is lost. */
  readonly onLost: (why: string) => void;
  readonly onPaused: () => void;
  /** Called when Redis begins to refuse writes. Running jobs go on for a while. */
  readonly onRefused: () => void;
}

/** The holder stops this fraction of a lease before its deadline, to allow for drift between its clock and Redis'. */
const marginShare = 0.2;
/** init kills its processes this fraction of a lease before the deadline, to allow for ping latency. */
const sandboxMarginShare = 0.1;
/** How often within a lease it is renewed. */
const renewals = 4;
/** A loop without progress for this many leases is stuck, and loses its lease. */
const stuckLeases = 3;

/**
 * Renews a lease as long as its tenancy makes progress.
 *
 *   kept ──renewed in time, and the loop came round──▶ kept
 *     │  └──Redis refuses every write──▶ refused ──for two minutes at most, until it renews──▶ kept
 *     └──taken over, not renewed by its deadline less a margin, or the loop is stuck──▶ lost
 *
 * It decides by this host's monotonic clock alone, so it stops in time without reaching any other process. A Redis that refuses
 * all writes gives the lease to no other worker, so the holder goes on; see docs/adr/0009.
 */
export class LeaseRenewer {
  readonly #options: LeaseRenewerOptions;
  #renewedAtMs: number;
  /** From when the lease's length counts: the last renewal, or a refusal that stands for one. */
  #countedFromMs: number;
  #isRefused = false;
  #isReleasing = false;
  #roundAtMs: number;

  constructor(options: LeaseRenewerOptions) {
    this.#options = options;
    this.#renewedAtMs = options.takenAtMs;
    this.#countedFromMs = options.takenAtMs;
    this.#roundAtMs = options.clock.now();
  }

  /** Reports that the tenancy's loop made progress. */
  round(): void {
    this.#roundAtMs = this.#options.clock.now();
  }

  /** Whether its time is over by the clock. In a process that was stopped, timers fire late. */
  get isLate(): boolean {
    return this.#options.clock.now() >= this.#lastMs;
  }

  /** How long commands may keep running in the sandbox if init never hears from this worker again. */
  get leftInSandboxMs(): number {
    const { leaseMs, clock } = this.#options;
    return this.#countedFromMs + leaseMs * (1 - sandboxMarginShare) - clock.now();
  }

  /** Gives the lease up. A renewal that is on its way is answered with `lost` then: only the answer to this says whether it was. */
  async release(options: Parameters<LeasePort["release"]>[0]): ReturnType<LeasePort["release"]> {
    this.#isReleasing = true;
    try {
      const answer = await this.#options.lease.release(options);
      this.#isReleasing = answer !== "kept";
      return answer;
    } catch (error) {
      this.#isReleasing = false;
      throw error;
    }
  }

  get #lastMs(): number {
    return this.#countedFromMs + this.#options.leaseMs * (1 - marginShare);
  }

  /** Renews until the signal. Does not throw. */
  async keep(signal: AbortSignal): Promise<void> {
    const { leaseMs, clock, onLost } = this.#options;
    while (!signal.aborted) {
      const pauseMs = Math.min(this.#toNextTickMs, this.#lastMs - clock.now());
      await clock.sleep(Math.max(0, pauseMs), signal).catch(() => {});
      if (signal.aborted) return;
      if (clock.now() - this.#roundAtMs > leaseMs * stuckLeases) return onLost("its loop made no progress");
      if (!(await this.#renew(signal))) return;
    }
  }

  /** Ticks of the process's clock are the same for all its leases, so that one call renews them. */
  get #toNextTickMs(): number {
    const tickMs = this.#options.leaseMs / renewals;
    return Math.ceil(tickMs - (this.#options.clock.now() % tickMs));
  }

  async #renew(signal: AbortSignal): Promise<boolean> {
    const { clock, onLost, onPaused } = this.#options;
    const asked = clock.now();
    const lastMs = this.#lastMs;
    const answer = await this.#answerUntil(lastMs, signal);
    const wasRefused = this.#isRefused;
    if (answer === "refused") this.#refused(asked);
    this.#isRefused = answer === "refused";
    if (answer === "lost" && !this.#isReleasing) {
      onLost("the lease was taken over");
      return false;
    }
    if (answer === "renewed" || answer === "paused") {
      this.#renewedAtMs = asked;
      this.#countedFromMs = asked;
      if (answer === "paused") onPaused();
    } else if (!signal.aborted && this.isLate) {
      const isRefused = answer === "refused" || (answer === "late" && wasRefused && !this.#mayGoOnAt(asked));
      onLost(isRefused ? "Redis refused to write for too long" : "it could not renew in time");
      return false;
    }
    return true;
  }

  /** Not by `AbortSignal.any`: over the tenancy's signal it would leak memory with every renewal while the sandbox is held. */
  async #answerUntil(lastMs: number, signal: AbortSignal) {
    const { clock, lease } = this.#options;
    const waiting = new AbortController();
    const stop = () => waiting.abort();
    signal.addEventListener("abort", stop);
    try {
      const late = () => "late" as const;
      return await Promise.race([
        lease.renew().catch(() => "unknown" as const),
        clock.sleep(Math.max(0, lastMs - clock.now()), waiting.signal).then(late, late),
      ]);
    } finally {
      signal.removeEventListener("abort", stop);
      stop();
    }
  }

  /** `take.lua` sees that Redis refused, and gives the lease to no other worker for a whole length after that. */
  #refused(askedMs: number): void {
    if (!this.#isRefused) this.#options.onRefused();
    if (this.#mayGoOnAt(askedMs)) this.#countedFromMs = askedMs;
  }

  #mayGoOnAt(askedMs: number): boolean {
    return askedMs - this.#renewedAtMs <= writesRefusedMs;
  }
}
