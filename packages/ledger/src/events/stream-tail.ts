import { Fault, redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { isCluster } from "../slots.ts";
import { passes, pause } from "./redis-errors.ts";

export type StreamEntry = [id: Buffer, fields: Buffer[]];

/** A stream being read, and how far. */
export interface Watch {
  readonly stream: string;
  /** Id of the last entry given. */
  readonly last: string;
  stop(): void;
}

export interface WatchOptions {
  readonly stream: string;
  readonly after: string;
  readonly onEntries: (entries: readonly StreamEntry[]) => void;
  readonly onFault: (fault: Fault) => void;
}

/** Of a stream. */
interface Position {
  readonly stream: string;
  readonly last: string;
}

interface Reading extends WatchOptions {
  last: string;
}

/** How long one read waits. A lost wake-up delays a new stream by this much. */
const blockMs = 2_000;
/** Polling interval for streams of other hash slots, which this read cannot wait for. */
const pollMs = 50;
/** A read that is this late has a dead connection, although no end closed it. */
const silentMs = 8_000;
const retryMs = 100;
/** Entries of one reply, however many streams it is about; each stream gives at least one. */
const entriesPerRead = 1_000;
const entriesPerStream = 200;
/** Redis looks at every stream of a read, about 1 µs each: reads over many are spaced so that it spends a twentieth of its time. */
const streamsPerMs = 50;
const mostPaceMs = 100;
/** Expiry of the wake stream, which only its reader needs. */
const wakeKeptSeconds = 60;

/**
 * Reads any number of streams with one blocking connection.
 *
 *   idle ──watch──▶ reading ──the last stop──▶ idle
 *                     │  a stream joins while the read waits: an entry in the wake stream ends the wait
 *
 * Each entry is given once and in order, from the id asked for, also across lost connections and restarts of Redis: only
 * entries that arrived move the position. Entries that Redis trimmed or expired before they were read are not seen.
 */
export class StreamTail {
  readonly #commands: Redis;
  readonly #blocking: Redis;
  readonly #wakeStream: string;
  readonly #readings = new Map<string, Reading>();
  readonly #stopped = new AbortController();
  #wakeLast = "0-0";
  #running = false;
  #blocked = false;
  #behind: Reading[] = [];

  constructor(commands: Redis, blocking: Redis, name: string) {
    this.#commands = commands;
    this.#blocking = blocking;
    this.#wakeStream = redisKeys.inboxWake(name);
  }

  /** One watch per stream at a time. */
  watch(options: WatchOptions): Watch {
    const { stream, after } = options;
    const reading: Reading = { ...options, last: after };
    this.#readings.set(stream, reading);
    if (!this.#running) void this.#run();
    else if (this.#blocked) this.#wake();
    return {
      stream,
      get last() {
        return reading.last;
      },
      stop: () => {
        if (this.#readings.get(stream) === reading) this.#readings.delete(stream);
      },
    };
  }

  close(): void {
    if (this.#stopped.signal.aborted) return;
    this.#stopped.abort();
    this.#readings.clear();
    this.#commands.unlink(this.#wakeStream).catch(() => {});
    this.#blocking.disconnect();
  }

  /** Sent once per wait. If it cannot be sent, the wait ends at its own timeout. */
  #wake(): void {
    this.#blocked = false;
    this.#commands
      .multi()
      .xadd(this.#wakeStream, "MAXLEN", 1, "*", "w", "")
      .expire(this.#wakeStream, wakeKeptSeconds)
      .exec()
      .catch(() => {});
  }

  async #run(): Promise<void> {
    this.#running = true;
    const { signal } = this.#stopped;
    while (!signal.aborted && this.#readings.size > 0) {
      try {
        const streams = this.#behind.length > 0 ? await this.#readBehind() : await this.#readAll();
        const paceMs = Math.min(Math.floor(streams / streamsPerMs), mostPaceMs);
        if (paceMs > 0 && this.#behind.length === 0) await pause(paceMs, signal);
      } catch (error) {
        if (!passes(error)) this.#fail(error);
        await pause(retryMs, signal);
      }
    }
    this.#running = false;
  }

  async #readAll(): Promise<number> {
    const readings = [...this.#readings.values()];
    this.#behind = await this.#read(readings, blockMs);
    return readings.length;
  }

  /** Reads once only the streams that had more than their share. Then all again, so that an endless stream does not hold up others. */
  async #readBehind(): Promise<number> {
    const readings = this.#behind.filter((reading) => this.#readings.get(reading.stream) === reading);
    this.#behind = [];
    if (readings.length > 0) await this.#read(readings, 1);
    return readings.length;
  }

  /** Returns the streams that may have more entries. */
  async #read(readings: readonly Reading[], waitMs: number): Promise<Reading[]> {
    const count = Math.max(1, Math.min(Math.floor(entriesPerRead / readings.length), entriesPerStream));
    const asked = new Map(readings.map((reading) => [reading.stream, reading]));
    const wake = { stream: this.#wakeStream, last: this.#wakeLast };
    const reply = (await isCluster(this.#commands))
      ? await this.#readSlots(count, waitMs, wake, readings)
      : await this.#xread(count, waitMs, [wake, ...readings]);
    const full: Reading[] = [];
    for (const [name, entries] of reply) {
      const stream = name.toString();
      const last = entries.at(-1)?.[0].toString();
      if (last === undefined) continue;
      if (stream === this.#wakeStream) this.#wakeLast = last;
      const reading = asked.get(stream);
      // A listener that joined meanwhile has its own position.
      if (!reading || this.#readings.get(stream) !== reading) continue;
      reading.last = last;
      reading.onEntries(entries);
      if (entries.length >= count) full.push(reading);
    }
    return full;
  }

  /** On a cluster one read takes streams of one slot: it waits for the streams of the wake stream's slot, and polls the others. */
  async #readSlots(count: number, waitMs: number, wake: Position, readings: readonly Position[]) {
    const slots = Map.groupBy(readings, ({ stream }) => slotOf(stream));
    const beside = slots.get(slotOf(wake.stream)) ?? [];
    slots.delete(slotOf(wake.stream));
    const others = Array.from(slots.values(), (own) =>
      this.#commands.xreadBuffer("COUNT", count, "STREAMS", ...streamsAndIds(own)),
    );
    const found = (await Promise.all(others)).flatMap((reply) => reply ?? []);
    const restMs = found.length > 0 ? 1 : slots.size > 0 ? Math.min(waitMs, pollMs) : waitMs;
    return [...found, ...(await this.#xread(count, restMs, [wake, ...beside]))];
  }

  async #xread(count: number, waitMs: number, from: readonly Position[]) {
    const watchdog = setInterval(() => {
      if (this.#blocking.status === "ready") this.#blocking.disconnect(true);
    }, waitMs + silentMs);
    this.#blocked = true;
    try {
      const read = ["COUNT", count, "BLOCK", waitMs, "STREAMS", ...streamsAndIds(from)] as const;
      return (await this.#blocking.xreadBuffer(...read)) ?? [];
    } finally {
      this.#blocked = false;
      clearInterval(watchdog);
    }
  }

  #fail(error: unknown): void {
    const detail = error instanceof Error ? error.message : String(error);
    const failed = [...this.#readings.values()];
    this.#readings.clear();
    for (const { onFault } of failed) {
      onFault(new Fault("redis-refused", { script: "XREAD", detail }, { cause: error }));
    }
  }
}

function streamsAndIds(from: readonly Position[]): string[] {
  return [...from.map(({ stream }) => stream), ...from.map(({ last }) => last)];
}

/** The hash tag, in braces, decides the slot. */
function slotOf(stream: string): string {
  return /\{([^}]+)\}/.exec(stream)?.[1] ?? stream;
}

/** For sorting: negative, zero or positive. */
export function compareIds(a: string, b: string): number {
  const [aMs = "0", aSequence = "0"] = a.split("-");
  const [bMs = "0", bSequence = "0"] = b.split("-");
  return Number(aMs) - Number(bMs) || Number(aSequence) - Number(bSequence);
}
