import type { Fault } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { type EventChannels, eventsOf, type Listener } from "./event-channels.ts";
import type { IdentifiedEvent } from "./job-events.ts";
import { passes, pause } from "./redis-errors.ts";
import { compareIds } from "./stream-tail.ts";

/** How much may wait for a slow reader. Beyond that the reader fetches the rest itself from the stream. */
const mostWaiting = { events: 256, bytes: 1024 * 1024 } as const;
const fetchedAtOnce = 64;
const retryMs = 100;

/**
 * One reader's position in a job's events.
 *
 *   fetching ──reached the end──▶ live ──waiting events pass their bound──▶ fetching
 *
 * Gives each event after its starting id once and in order, as long as Redis keeps the stream. Memory is bounded however
 * slow the reader is.
 */
export class EventFollower implements Listener {
  readonly #commands: Redis;
  readonly #channels: EventChannels;
  readonly #stream: string;
  readonly #signal: AbortSignal;
  #position: string;
  #live = false;
  #waiting: IdentifiedEvent[] = [];
  #waitingBytes = 0;
  #fault: Fault | undefined;
  #arrived: () => void = () => {};

  constructor(commands: Redis, channels: EventChannels, stream: string, after: string, signal: AbortSignal) {
    this.#commands = commands;
    this.#channels = channels;
    this.#stream = stream;
    this.#position = after === "" ? "0-0" : after;
    this.#signal = signal;
    signal.addEventListener("abort", this.#onAbort);
  }

  /** The next events, at least one; none when the signal fired. */
  async next(): Promise<readonly IdentifiedEvent[]> {
    while (!this.#signal.aborted) {
      if (this.#waiting.length > 0) return this.#takeWaiting();
      if (this.#fault) throw this.#fault;
      if (this.#live) {
        await new Promise<void>((resolve) => {
          this.#arrived = resolve;
        });
      } else {
        const events = await this.#fetch();
        if (events.length > 0) return events;
      }
    }
    return [];
  }

  stop(): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#live = false;
    this.#channels.leave(this.#stream, this);
  }

  take(events: readonly IdentifiedEvent[]): void {
    for (const event of events) {
      if (compareIds(event.id, this.#position) <= 0) continue;
      if (this.#waiting.length >= mostWaiting.events || this.#waitingBytes >= mostWaiting.bytes) {
        this.#live = false;
        this.#channels.leave(this.#stream, this);
        break;
      }
      this.#waiting.push(event);
      this.#waitingBytes += "bytes" in event ? event.bytes.length : 0;
      this.#position = event.id;
    }
    this.#arrived();
  }

  fail(fault: Fault): void {
    this.#fault = fault;
    this.#arrived();
  }

  readonly #onAbort = (): void => this.#arrived();

  #takeWaiting(): readonly IdentifiedEvent[] {
    const events = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    return events;
  }

  async #fetch(): Promise<readonly IdentifiedEvent[]> {
    // Events that other readers got before this fetch are either in its reply or no longer in the stream.
    const shared = this.#channels.position(this.#stream);
    const entries = await this.#range();
    const last = entries.at(-1)?.[0].toString();
    if (last !== undefined) this.#position = last;
    const events = eventsOf(entries);
    const atEnd = entries.length < fetchedAtOnce && events.at(-1)?.type !== "finished";
    if (atEnd && !this.#signal.aborted) {
      if (shared !== undefined && compareIds(this.#position, shared) < 0) this.#position = shared;
      this.#live = this.#channels.join(this.#stream, this.#position, this);
    }
    return events;
  }

  async #range() {
    const from = `(${this.#position}`;
    while (!this.#signal.aborted) {
      try {
        return await this.#commands.xrangeBuffer(this.#stream, from, "+", "COUNT", fetchedAtOnce);
      } catch (error) {
        if (!passes(error)) throw error;
        await pause(retryMs, this.#signal);
      }
    }
    return [];
  }
}
