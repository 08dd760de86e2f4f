import { isFault, writesRefusedMs } from "@berth/protocol";
import { LeaseKeeper, type LeaseKeeperOptions } from "./lease-keeper.ts";
import { unlessAborted } from "./unless-aborted.ts";

export interface AuthorityOptions extends Omit<LeaseKeeperOptions, "onRefused"> {
  /** Redis refuses to write, or refused a publication for a reason that waiting does not mend. */
  readonly onTrouble: (error: Error) => void;
}

const writesRefused = `Redis refuses to write; what runs goes on for up to ${writesRefusedMs / 1_000} s`;

/** Pause after something could not be said, as while Redis is away. */
const againMs = 250;

/**
 * Whether a tenancy may act and speak in the sandbox's name.
 *
 *   ours ──lease taken over, or not renewed in time──▶ lost
 *     └──close()──▶ over
 *
 * Decided by this host's clock where nobody can be reached, and by whoever compares epochs where somebody can. Once it has ended it
 * does not come back, and whatever waits here is told so at once.
 */
export class Authority {
  readonly #options: AuthorityOptions;
  readonly #keeper: LeaseKeeper;
  readonly #over = new AbortController();
  /** Why something could not be said, since something last was: each reason is told once. */
  readonly #unsaid = new Set<string>();

  constructor(options: AuthorityOptions) {
    this.#options = options;
    this.#keeper = new LeaseKeeper({
      ...options,
      onLost: (why) => void this.lose(why),
      onRefused: () => options.onTrouble(new Error(writesRefused)),
    });
  }

  /** Aborted when it has ended. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** Renews the lease until the end. Does not throw. */
  keep(): Promise<void> {
    return this.#keeper.keep(this.signal);
  }

  /** The tenancy's loop came round: that is what earns a renewal. */
  round(): void {
    this.#keeper.round();
  }

  /** How long things may still run in the sandbox if nobody hears of this worker again. */
  readonly leaseLeftMs = (): number => this.#keeper.leftInSandboxMs;

  /** Throws when it has ended. A process that was stopped for a while comes here before its timers have told that its time is over. */
  check(): void {
    this.signal.throwIfAborted();
    if (this.#keeper.isLate) throw this.lose("it could not renew in time");
  }

  /** From here on nothing is said or run in the sandbox's name. */
  lose(why: string): Error {
    const error = new Error(why);
    if (!this.signal.aborted) {
      this.#over.abort(error);
      this.#options.onLost(why);
    }
    return error;
  }

  close(): void {
    this.#over.abort("over");
  }

  /** Tries until it is said or we may no longer speak. */
  async publish<R extends string>(say: () => Promise<R | "fenced">): Promise<Exclude<R, "fenced">> {
    for (;;) {
      this.check();
      try {
        const said = await this.whileOurs(say());
        this.#unsaid.clear();
        if (said !== "fenced") return said as Exclude<R, "fenced">;
      } catch (error) {
        // Whatever it is, nobody else can say it for us.
        if (isFault(error) && !error.retry && !this.#unsaid.has(error.message)) {
          this.#unsaid.add(error.message);
          this.#options.onTrouble(error);
        }
        await this.#options.clock.sleep(againMs, this.signal);
        continue;
      }
      throw this.lose("somebody else publishes for the sandbox");
    }
  }

  /** Redis may be away for longer than the lease: who may say nothing any more does not wait for its answers. */
  whileOurs<T>(asked: Promise<T>): Promise<T> {
    return unlessAborted(asked, this.signal);
  }
}
