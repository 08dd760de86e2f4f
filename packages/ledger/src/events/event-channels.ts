import type { Fault } from "@berth/protocol";
import type { IdentifiedEvent } from "./job-events.ts";
import { readKnownEvent } from "./job-events.ts";
import { compareIds, type StreamEntry, type StreamTail, type Watch } from "./stream-tail.ts";

/** Receives a job's events as they happen. */
export interface Listener {
  take(events: readonly IdentifiedEvent[]): void;
  fail(fault: Fault): void;
}

interface Channel {
  readonly watch: Watch;
  readonly listeners: Set<Listener>;
}

/** The jobs with listeners. Each job's stream is read once, however many listeners it has. */
export class EventChannels {
  readonly #tail: StreamTail;
  readonly #channels = new Map<string, Channel>();

  constructor(tail: StreamTail) {
    this.#tail = tail;
  }

  /** How far a stream has been read for its listeners. */
  position(stream: string): string | undefined {
    return this.#channels.get(stream)?.watch.last;
  }

  /** Delivers every event after the position. False: the other listeners are ahead; the caller first reads up to their position. */
  join(stream: string, position: string, listener: Listener): boolean {
    const channel = this.#channels.get(stream);
    if (channel && compareIds(position, channel.watch.last) < 0) return false;
    (channel ?? this.#open(stream, position)).listeners.add(listener);
    return true;
  }

  leave(stream: string, listener: Listener): void {
    const channel = this.#channels.get(stream);
    if (!channel?.listeners.delete(listener) || channel.listeners.size > 0) return;
    this.#channels.delete(stream);
    channel.watch.stop();
  }

  #open(stream: string, after: string): Channel {
    const listeners = new Set<Listener>();
    const onEntries = (entries: readonly StreamEntry[]) => {
      const events = eventsOf(entries);
      for (const listener of [...listeners]) listener.take(events);
    };
    const onFault = (fault: Fault) => this.#fail(stream, fault);
    const channel: Channel = { watch: this.#tail.watch({ stream, after, onEntries, onFault }), listeners };
    this.#channels.set(stream, channel);
    return channel;
  }

  #fail(stream: string, fault: Fault): void {
    const channel = this.#channels.get(stream);
    if (!channel) return;
    this.#channels.delete(stream);
    channel.watch.stop();
    for (const listener of channel.listeners) listener.fail(fault);
  }
}

/** The events that this client understands: a newer worker may publish types that an older client does not know. */
export function eventsOf(entries: readonly StreamEntry[]): IdentifiedEvent[] {
  return entries.flatMap((entry) => {
    const event = readKnownEvent(entry);
    return event ? [{ id: entry[0].toString(), ...event }] : [];
  });
}
