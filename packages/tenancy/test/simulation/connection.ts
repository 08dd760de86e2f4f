import { Fault } from "@berth/protocol";
import type { SimProcess } from "./sim-process.ts";
import type { Trace } from "./trace.ts";
import type { VirtualTime } from "./virtual-time.ts";
import type { Weather } from "./weather.ts";

export interface ConnectionOptions {
  readonly name: string;
  readonly time: VirtualTime;
  readonly process: SimProcess;
  readonly weather: Weather;
  readonly trace: Trace;
  /** A call that is not answered by then fails. Redis may still carry it out later. */
  readonly timeoutMs: number;
  /** Called when Redis has carried a call out, before the answer arrives. */
  readonly onActed?: (call: string) => void;
  /** Redis refused to write. */
  readonly onRefused?: () => void;
}

/** Calls that change nothing: a Redis that refuses to write answers them. */
const onlyReads = /^(active|progress|load|look|check|wake)\b/;

const noMemory = "OOM command not allowed when used memory > 'maxmemory'.";

interface Sent {
  readonly dueMs: number;
  readonly act: () => void;
}

/**
 * One process' connection to Redis. Redis carries calls out in the order in which they were made, also if their
 * answers are lost, and if the sender is frozen or dead.
 */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #sent: Sent[] = [];
  #pumping = false;
  #answeredMs = 0;
  #open = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** Calls that are not answered yet. */
  get open(): number {
    return this.#open;
  }

  /** A script of ours: its failures are faults. */
  script<R>(what: string, act: () => R): Promise<R> {
    return this.#call(what, act, true);
  }

  /** A call of BullMQ's: its failures are plain errors. */
  bull<R>(what: string, act: () => R): Promise<R> {
    return this.#call(what, act, false);
  }

  #call<R>(what: string, act: () => R, faults: boolean): Promise<R> {
    const { time, process, weather, trace, name, timeoutMs, onActed, onRefused } = this.#options;
    const mishap = weather.mishap(what);
    if (mishap) trace.note(name, mishap, what);
    this.#open++;
    return new Promise<R>((resolve, reject) => {
      let settled = false;
      const settle = (run: () => void) => {
        if (settled) return;
        settled = true;
        this.#open--;
        forgetTimeout();
        run();
      };
      const fail = (detail: string) => () => reject(errorOf(faults, detail));
      const forgetTimeout = process.after(timeoutMs, "timer", () => settle(fail("Command timed out")));
      if (mishap === "refused") {
        process.after(weather.latencyMs(undefined), "io", () => settle(fail("Connection is closed.")));
        return;
      }
      const answer = () => {
        const writes = !onlyReads.test(what);
        const refused = time.nowMs < weather.redisRefusesUntilMs && writes;
        // Scripts of ours work without memory, all but the one that adds a job; BullMQ's do not.
        const full = !refused && time.nowMs < weather.redisFullUntilMs && writes && !faults;
        if (full) trace.note(name, "no-memory", what);
        const run =
          refused || full
            ? () => reject(refused ? refusal(faults) : new Error(noMemory))
            : outcomeOf(act, resolve, reject);
        // Resent after a reconnection: carried out twice, and answered once, for the second time.
        const answered = mishap === "sent-again" && !refused && !full ? outcomeOf(act, resolve, reject) : run;
        const outcome = mishap === "answer-lost" ? fail("Connection is closed.") : answered;
        if (refused) onRefused?.();
        else if (!full) onActed?.(what);
        const backMs = weather.latencyMs(mishap === "slow-answer" ? mishap : undefined);
        // Answers arrive in order, too: a late one delays those behind it.
        this.#answeredMs = Math.max(this.#answeredMs, time.nowMs + backMs);
        process.after(this.#answeredMs - time.nowMs, "io", () => settle(outcome));
      };
      const thereMs = weather.latencyMs(mishap === "slow" ? mishap : undefined);
      this.#send({ dueMs: time.nowMs + thereMs, act: answer });
    });
  }

  #send(sent: Sent): void {
    this.#sent.push(sent);
    if (!this.#pumping) this.#pump();
  }

  #pump(): void {
    const { time, weather } = this.#options;
    const first = this.#sent[0];
    this.#pumping = first !== undefined;
    if (!first) return;
    const dueMs = Math.max(first.dueMs, weather.redisAwayUntilMs);
    time.after(dueMs - time.nowMs, () => {
      if (time.nowMs >= weather.redisAwayUntilMs) {
        this.#sent.shift();
        first.act();
      }
      this.#pump();
    });
  }
}

function outcomeOf<R>(act: () => R, resolve: (value: R) => void, reject: (error: unknown) => void) {
  try {
    const result = act();
    return () => resolve(result);
  } catch (error) {
    return () => reject(error);
  }
}

function refusal(faults: boolean): Error {
  const detail =
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.";
  return faults ? new Fault("redis-refused", { script: "simulated", detail }) : new Error(detail);
}

function errorOf(faults: boolean, detail: string): Error {
  return faults ? new Fault("redis-unreachable", { address: "here", detail }) : new Error(detail);
}
