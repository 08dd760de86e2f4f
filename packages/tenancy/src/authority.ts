import { isFault, writesRefusedMs } from "@berth/protocol";
import { LeaseRenewer, type LeaseRenewerOptions } from "./lease-renewer.ts";
import type { LeasePort } from "./tenancy-ports.ts";

export interface AuthorityOptions extends Omit<LeaseRenewerOptions, "onRefused"> {
  /** Called when Redis refuses to write, or refuses a publication for a reason that does not pass. */
  readonly onTrouble: (error: Error) => void;
}

const writesRefused = `Redis refuses to write; running jobs go on for up to ${writesRefusedMs / 1_000} s`;

/** Pause after a failed publication, as while Redis is away. */
const againMs = 250;

/**
 * Whether a tenancy may act on the sandbox and publish for it.
 *
 *   ours ──lease taken over, or not renewed in time──▶ lost
 *     └──close()──▶ over
 *
 * This host's clock decides when Redis and init cannot be reached. Otherwise they decide, by comparing epochs. Authority that has
 * ended does not come back, and every wait here is rejected at once.
 */
export class Authority {
  readonly #options: AuthorityOptions;
  readonly #renewer: LeaseRenewer;
  readonly #over = new AbortController();
  /** Reasons for failed publications that were reported since the last success. Each is reported once. */
  readonly #reported = new Set<string>();
  /** Rejects the waits when authority ends. Every job waits several times, so all share one listener of the signal. */
  readonly #waiting = new Set<(reason: unknown) => void>();

  constructor(options: AuthorityOptions) {
    this.#options = options;
    this.#renewer = new LeaseRenewer({
      ...options,
      onLost: (why) => void this.lose(why),
      onRefused: () => options.onTrouble(new Error(writesRefused)),
    });
    this.signal.addEventListener("abort", () => this.#rejectAll(), { once: true });
  }

  /** Aborts when authority has ended. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** Renews the lease until the end. Does not throw. */
  keep(): Promise<void> {
    return this.#renewer.keep(this.signal);
  }

  /** Reports that the tenancy's loop made progress. Without progress the lease is not renewed. */
  round(): void {
    this.#renewer.round();
  }

  /** Gives the lease up. Authority goes on until `close`. */
  release(options: Parameters<LeasePort["release"]>[0]): ReturnType<LeasePort["release"]> {
    return this.#renewer.release(options);
  }

  /** How long commands may keep running in the sandbox if init never hears from this worker again. */
  readonly leaseLeftMs = (): number => this.#renewer.leftInSandboxMs;

  /** Throws when it has ended. A process that was stopped for a while comes here before its timers have fired. */
  check(): void {
    this.signal.throwIfAborted();
    if (this.#renewer.isLate) throw this.lose("it could not renew in time");
  }

  /** From here on this tenancy publishes nothing and runs nothing. */
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

  /** Retries until it is published or the lease is lost. */
  async publish<R extends string>(send: () => Promise<R | "fenced">): Promise<Exclude<R, "fenced">> {
    for (;;) {
      this.check();
      try {
        const answer = await this.whileOurs(send());
        this.#reported.clear();
        if (answer !== "fenced") return answer as Exclude<R, "fenced">;
      } catch (error) {
        // Retried after any error: only this holder can publish it.
        if (isFault(error) && !error.retry && !this.#reported.has(error.message)) {
          this.#reported.add(error.message);
          this.#options.onTrouble(error);
        }
        await this.#options.clock.sleep(againMs, this.signal);
        continue;
      }
      throw this.lose("another worker publishes for the sandbox");
    }
  }

  /** Waits for an answer of Redis, but not after the lease is lost: Redis may be away for longer. */
  whileOurs<T>(asked: Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    asked.then(
      (value) => {
        this.#waiting.delete(reject);
        resolve(value);
      },
      (error: unknown) => {
        this.#waiting.delete(reject);
        reject(error);
      },
    );
    if (this.signal.aborted) reject(this.signal.reason);
    else this.#waiting.add(reject);
    return promise;
  }

  #rejectAll(): void {
    for (const reject of this.#waiting) reject(this.signal.reason);
    this.#waiting.clear();
  }
}
