import { writesRefusedMs } from "@berth/protocol";
import type { Clock, LeasePort } from "./tenancy-ports.ts";

export interface LeaseKeeperOptions {
  readonly leaseMs: number;
  /** By the same clock: before the lease was asked for. */
  readonly takenAtMs: number;
  readonly clock: Clock;
  readonly lease: LeasePort;
  /** Once: we may no longer act in the sandbox's name. */
  readonly onLost: (why: string) => void;
  readonly onPaused: () => void;
  /** Redis has begun to refuse writes; what runs goes on for a while. */
  readonly onRefused: () => void;
}

/** The holder stops this share of a lease before its deadline: its clock and Redis' are not the same. */
const marginShare = 0.2;
/** What runs in the sandbox is ended by the sandbox itself this share before the deadline: a sign to it is on its way for a while. */
const sandboxMarginShare = 0.1;
/** How often within a lease it is renewed. */
const renewals = 4;
/** A loop that has not come round for this many leases is stuck; the sandbox must not stay with it. */
const stuckLeases = 3;

/**
 * Keeps a lease while its tenancy earns it.
 *
 *   kept ──renewed in time, and the loop came round──▶ kept
 *     │  └──Redis refuses every write──▶ refused ──for two minutes at most, until it renews──▶ kept
 *     └──taken over, not renewed by its deadline less a margin, or the loop is stuck──▶ lost
 *
 * What it decides, it decides by this host's monotonic clock alone: it stops in time without reaching anybody. A Redis that refuses
 * all writes gives the lease to no other worker, so the holder goes on; see docs/adr/0009.
 */
export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions;
  #renewedAtMs: number;
  /** From when the lease's length counts: the last renewal, or a refusal that stands for one. */
  #countedFromMs: number;
  #isRefused = false;
  #roundAtMs: number;

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
    this.#renewedAtMs = options.takenAtMs;
    this.#countedFromMs = options.takenAtMs;
    this.#roundAtMs = options.clock.now();
  }

  /** The tenancy's loop came round. */
  round(): void {
    this.#roundAtMs = this.#options.clock.now();
  }

  /** Whether its time is over, whatever the timers say: a process that was stopped runs them last. */
  get isLate(): boolean {
    return this.#options.clock.now() >= this.#lastMs;
  }

  /** How long things may still run in the sandbox if nobody hears of this worker again. */
  get leftInSandboxMs(): number {
    const { leaseMs, clock } = this.#options;
    return this.#countedFromMs + leaseMs * (1 - sandboxMarginShare) - clock.now();
  }

  get #lastMs(): number {
    return this.#countedFromMs + this.#options.leaseMs * (1 - marginShare);
  }

  /** Until the signal. Does not throw. */
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

  /** Ticks of the process' clock, the same for all its leases: they are renewed in one call. */
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
    if (answer === "lost") {
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

  /** `AbortSignal.any` over the tenancy's signal would keep something of every renewal for as long as the sandbox is held. */
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
