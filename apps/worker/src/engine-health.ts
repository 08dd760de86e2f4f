import { type Fault, type FaultCode, isFault, type SandboxKey, tenantOf } from "@berth/protocol";
import type { Clock } from "@berth/tenancy";

export type EngineState =
  | { readonly state: "ok" }
  /** The check fails: no sandbox can start on this host. */
  | { readonly state: "away"; readonly why: string }
  /** The check passes, and sandboxes do not start. `why` is shown to tenants; `detail` may name another tenant's sandbox. */
  | { readonly state: "failing"; readonly why: string; readonly detail: string };

export interface EngineHealthOptions {
  /** Throws what keeps every sandbox from starting: the engine does not answer, the workspaces cannot be written. */
  readonly check: (signal: AbortSignal) => Promise<unknown>;
  readonly clock: Clock;
  /** Called once per change. */
  readonly onChange: (state: EngineState, before: EngineState) => void;
}

const checkMs = { first: 500, last: 5_000 } as const;
/** When the sandboxes of so many tenants fail to start, the host is broken; of fewer, the sandboxes are. */
const failingTenants = 3;
/** A worker whose starts fail tries one new sandbox, and waits longer after each failure. */
const tryMs = { first: 2_000, last: 60_000 } as const;
/** Faults of the engine itself, for any sandbox. */
const awayCodes: ReadonlySet<FaultCode> = new Set<FaultCode>(["engine-unreachable", "engine-wedged"]);

/**
 * Whether sandboxes can start on this host.
 *
 *            ┌──────────────────────a start works────────────────────┐
 *   ok ◀─────┴──starts of three tenants failed, none worked since──▶ failing
 *    ▲ └──a start failed, and the check does──▶ away ◀──the check fails──┘
 *    └──────────────the check passes────────────┘
 *
 * While away the worker takes no offers. While failing it takes offers of sandboxes that live on its host, since no other worker may, and
 * now and then of a new one, to see whether starts work again.
 */
export class EngineHealth {
  readonly #options: EngineHealthOptions;
  /** Tenants whose sandboxes failed to start since one last started. */
  readonly #failed = new Set<string>();
  #state: EngineState = { state: "ok" };
  #checking = false;
  #tryAtMs = 0;
  #tryPauseMs: number = tryMs.first;

  constructor(options: EngineHealthOptions) {
    this.#options = options;
  }

  get state(): EngineState {
    return this.#state;
  }

  /** Whether an offer may be taken now. `livesHere`: no other host may take the sandbox. */
  admits({ livesHere }: { readonly livesHere: boolean }): boolean {
    if (this.#state.state === "ok") return true;
    return this.#state.state === "failing" && (livesHere || this.#options.clock.now() >= this.#tryAtMs);
  }

  /** The worker takes a new sandbox. While failing, that is the one try until the next pause is over. */
  tried(): void {
    if (this.#state.state !== "failing") return;
    this.#tryAtMs = this.#options.clock.now() + this.#tryPauseMs;
    this.#tryPauseMs = Math.min(this.#tryPauseMs * 2, tryMs.last);
  }

  started(): void {
    this.#failed.clear();
    if (this.#state.state === "failing") this.#set({ state: "ok" });
  }

  /** Checks now, without waiting for a start to fail. */
  look(signal: AbortSignal): void {
    if (this.#checking) return;
    this.#checking = true;
    void this.#check(signal).finally(() => {
      this.#checking = false;
    });
  }

  /** A sandbox failed to start because of this host. */
  startFailed(key: SandboxKey, fault: Fault, signal: AbortSignal): void {
    this.#failed.add(tenantOf(key));
    if (this.#state.state === "away") return;
    if (awayCodes.has(fault.code)) this.#set({ state: "away", why: fault.message });
    else if (this.#state.state === "ok" && this.#failed.size >= failingTenants) {
      const why = `sandboxes of ${this.#failed.size} tenants did not start, the last because of ${fault.code}`;
      this.#tryPauseMs = tryMs.first;
      this.#set({ state: "failing", why, detail: fault.message });
      this.tried();
    }
    this.look(signal);
  }

  /** Checks at once, and then until the check passes. */
  async #check(signal: AbortSignal): Promise<void> {
    const { check, clock } = this.#options;
    for (let pause: number = checkMs.first; !signal.aborted; pause = Math.min(pause * 2, checkMs.last)) {
      if (this.#state.state === "away") await clock.sleep(pause, signal).catch(() => {});
      if (signal.aborted) return;
      try {
        await check(signal);
        if (this.#state.state === "away") {
          this.#failed.clear();
          this.#set({ state: "ok" });
        }
        return;
      } catch (error) {
        const away = { state: "away", why: error instanceof Error ? error.message : String(error) } as const;
        // The error of the last real attempt is more useful than that of the open breaker.
        if (this.#state.state === "away" && isFault(error, "engine-wedged")) continue;
        if (this.#state.state === "away") this.#state = away;
        else if (!signal.aborted) this.#set(away);
      }
    }
  }

  #set(state: EngineState): void {
    const before = this.#state;
    this.#state = state;
    this.#options.onChange(state, before);
  }
}
