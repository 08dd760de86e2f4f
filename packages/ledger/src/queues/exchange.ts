import { redisKeys, type SandboxKey } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import type { Holding } from "../leases/leases.ts";
import { runInSlot } from "../slots.ts";
import { usageDaysKept } from "../usage/usage-record.ts";
import { type BoardEntry, boardArguments } from "./board-entry.ts";
import {
  completedKey,
  entryPrefix,
  failedKey,
  finishedKept,
  prioritizedKey,
  takenKey,
  waitKey,
} from "./queue-layout.ts";

/** Events of a finished job are kept this long, and so is the record that its id was used. */
export const keptMs = 24 * 3_600_000;
/**
 * How many ends and beginnings go into one script. What a holder publishes in one tick is split, so that Redis works on one part while
 * Node works on the answer to the part before. In one script the two take turns, which was 1.4 to 1.7 times as slow with empty jobs.
 */
const mostEndsAtOnce = 8;
const mostBytesAtOnce = 1024 * 1024;

const published = ["published", "fenced", "finished-before"] as const;
export type Published = (typeof published)[number];

const begun = ["begun", "fenced", "finished-before", "cancelled", "out-of-turn", "late"] as const;
export type Begun = (typeof begun)[number];

/** A holder's request for jobs of its queue. */
export interface Taking {
  readonly most: number;
  /** The first job that is taken begins in the same step. */
  readonly begin?: BeginningAtOnce | undefined;
}

export interface BeginningAtOnce {
  /** Names the call. If its answer is lost, the holder takes the beginning back by this name. */
  readonly take: string;
  /** Fields of the event, as a JSON object. The script adds the attempt. */
  readonly data: string;
  /** As in `Beginning`. */
  readonly notAfterMs: number;
}

/** `behind`: a job is taken that the holder has not begun. Empty: none was to begin, or there was none. */
const fates = [...begun, "behind", ""] as const;

export interface Taken {
  readonly entries: readonly TakenEntry[];
  /** For the first job. */
  readonly fate: (typeof fates)[number];
}

/** An attempt as it was taken from the queue. */
export interface TakenEntry {
  readonly queuedId: string;
  readonly data: string;
  readonly timestamp: string;
}

export interface Ending {
  readonly jobId: string;
  readonly queuedId: string;
  /** The client whose inbox gets the end. */
  readonly inbox?: string | undefined;
  /** It leaves its queue in the same step. Otherwise its holder completes it later. */
  readonly leaves: boolean;
  /** How the job ended; empty if another attempt follows. */
  readonly outcome: string;
  /** The new mark on its queue entry. */
  readonly shown: BoardEntry;
  /** Names this publication, so that a repetition after a lost answer adds nothing. */
  readonly part: string;
  /** An excerpt of the result for results and inbox; empty if the whole result goes there. */
  readonly excerpt: string;
  /** What the attempt used, for its tenant's day, as `usedArgument` writes it. */
  readonly used: string;
  /** Type, data, type, data, … */
  readonly eventFields: readonly (string | Buffer)[];
}

export interface Beginning {
  readonly jobId: string;
  readonly queuedId: string;
  readonly attempt: number;
  /** Fields of the event. */
  readonly data: string;
  /** Jobs that were taken before it and that its holder knows, in the order of taking. */
  readonly before: readonly string[];
  /** By Redis' time: until then the holder can be sure that it holds the sandbox. */
  readonly notAfterMs: number;
}

type Holder = Holding & { readonly key: SandboxKey };

const exchange = new Script({
  name: "exchange",
  file: new URL("../../lua/exchange.lua", import.meta.url),
  parse: (reply) => {
    if (!Array.isArray(reply) || (reply[0] !== "exchanged" && reply[0] !== "fenced"))
      throw new TypeError(`not the reply of an exchange: ${String(reply).slice(0, 100)}`);
    return reply[0] === "fenced" ? ("fenced" as const) : (reply.slice(1) as unknown[]);
  },
});

interface Waiting<T, R> {
  readonly what: T;
  readonly answer: PromiseWithResolvers<R>;
}

/** What one holder sends in this tick. */
class Gathered {
  readonly ends: Waiting<Ending, Published>[] = [];
  readonly begins: Waiting<Beginning, Begun>[] = [];
  take: Waiting<Taking, Taken | "fenced"> | undefined;
  bytes = 0;

  end(what: Ending): Promise<Published> {
    const answer = Promise.withResolvers<Published>();
    this.ends.push({ what, answer });
    for (const field of what.eventFields) this.bytes += field.length;
    return answer.promise;
  }

  begin(what: Beginning): Promise<Begun> {
    const answer = Promise.withResolvers<Begun>();
    this.begins.push({ what, answer });
    return answer.promise;
  }

  get isFull(): boolean {
    return Math.max(this.ends.length, this.begins.length) >= mostEndsAtOnce || this.bytes >= mostBytesAtOnce;
  }
}

/**
 * Gathers what the holder of a sandbox publishes in one tick of the event loop, and sends it in one script: ends, then beginnings, then
 * the jobs it takes. Each can be repeated after a lost answer. Calls of one connection are carried out in their order, so several
 * may be on their way.
 */
export class Exchanges {
  readonly #redis: Redis;
  readonly #usageDays: number;
  readonly #gathered = new Map<string, { holder: Holder; gathered: Gathered }>();
  #scheduled = false;

  constructor(redis: Redis, { usageDays = usageDaysKept }: { readonly usageDays?: number | undefined } = {}) {
    this.#redis = redis;
    this.#usageDays = usageDays;
  }

  end(holder: Holder, what: Ending): Promise<Published> {
    return this.#of(holder).end(what);
  }

  begin(holder: Holder, what: Beginning): Promise<Begun> {
    return this.#of(holder).begin(what);
  }

  /** Both in one script: without the end there is no beginning. */
  endAndBegin(holder: Holder, ending: Ending, beginning: Beginning): Promise<[Published, Begun]> {
    const gathered = this.#of(holder);
    return Promise.all([gathered.end(ending), gathered.begin(beginning)]);
  }

  /** Takes the next jobs of the queue. One call at a time. */
  take(holder: Holder, what: Taking): Promise<Taken | "fenced"> {
    const answer = Promise.withResolvers<Taken | "fenced">();
    this.#of(holder).take = { what, answer };
    return answer.promise;
  }

  #of(holder: Holder): Gathered {
    const name = `${holder.key}/${holder.epoch}/${holder.instance}`;
    let found = this.#gathered.get(name);
    if (found?.gathered.isFull) {
      this.#gathered.delete(name);
      void this.#send(found.holder, found.gathered);
      found = undefined;
    }
    if (found === undefined) {
      found = { holder, gathered: new Gathered() };
      this.#gathered.set(name, found);
    }
    if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => this.#sendAll());
    }
    return found.gathered;
  }

  #sendAll(): void {
    this.#scheduled = false;
    const all = [...this.#gathered.values()];
    this.#gathered.clear();
    for (const { holder, gathered } of all) void this.#send(holder, gathered);
  }

  async #send(holder: Holder, gathered: Gathered): Promise<void> {
    const { ends, begins, take } = gathered;
    try {
      const { key } = holder;
      const [keys, args] = [keysOf(key), argumentsOf(holder, gathered, this.#usageDays)];
      const reply = await runInSlot(this.#redis, { key, script: exchange, keys, args });
      if (reply === "fenced") {
        for (const { answer } of [...ends, ...begins]) answer.resolve("fenced");
        take?.answer.resolve("fenced");
        return;
      }
      ends.forEach(({ answer }, index) => {
        answer.resolve(wordIn(published, reply[index]));
      });
      begins.forEach(({ answer }, index) => {
        answer.resolve(wordIn(begun, reply[ends.length + index]));
      });
      take?.answer.resolve(takenIn(reply.slice(ends.length + begins.length)));
    } catch (error) {
      for (const { answer } of [...ends, ...begins]) answer.reject(error);
      take?.answer.reject(error);
    }
  }
}

/** The script makes the keys of jobs itself, from their prefixes. */
function keysOf(key: SandboxKey): string[] {
  const queue = [waitKey(key), prioritizedKey(key), takenKey(key), completedKey(key), failedKey(key)];
  return [redisKeys.lease(key), ...queue];
}

function argumentsOf({ key, epoch, instance }: Holder, { ends, begins, take }: Gathered, usageDays: number) {
  const atOnce = take?.what.begin;
  const deadlines = [...begins.map(({ what }) => what), ...(atOnce ? [atOnce] : [])];
  const notAfterMs = Math.min(...deadlines.map((one) => one.notAfterMs), Number.MAX_SAFE_INTEGER);
  const known = knownBefore(begins.map(({ what }) => what));
  const args: (string | number | Buffer)[] = [
    ...[epoch, instance, key, notAfterMs, keptMs, entryPrefix(key), finishedKept],
    ...[take?.what.most ?? 0, ends.length, begins.length, known.length],
    ...[atOnce?.data ?? "", atOnce?.take ?? "", redisKeys.events(key, ""), redisKeys.job(key, "")],
    ...[redisKeys.staged(key, ""), usageDays, ...known],
  ];
  for (const { what } of ends) {
    const { jobId, queuedId, leaves, inbox, outcome, shown, part, excerpt, used, eventFields } = what;
    args.push(jobId, queuedId, leaves ? "1" : "", inboxKey(inbox), outcome, ...boardArguments(shown));
    args.push(part, excerpt, used, eventFields.length / 2, ...eventFields);
  }
  for (const { what } of begins) args.push(what.jobId, what.queuedId, what.attempt, what.data);
  return args;
}

/** Each beginning lists the jobs before it in the same line, so the longest list contains the others. */
function knownBefore(begins: readonly Beginning[]): string[] {
  const known = new Set<string>();
  for (const { before } of begins) if (before.length > known.size) for (const id of before) known.add(id);
  for (const { queuedId } of begins) known.add(queuedId);
  return [...known];
}

/** Empty if no client waits there. */
export function inboxKey(inbox: string | undefined): string {
  return inbox === undefined ? "" : redisKeys.inbox(inbox);
}

function wordIn<W extends string>(words: readonly W[], reply: unknown): W {
  const word = words.find((one) => one === reply);
  if (word === undefined) throw new TypeError(`an exchange replied ${String(reply).slice(0, 100)}`);
  return word;
}

function takenIn(reply: readonly unknown[]): Taken {
  const entries: TakenEntry[] = [];
  for (let index = 1; index < reply.length; index += 3) {
    const [queuedId, data, timestamp] = reply.slice(index, index + 3);
    entries.push({ queuedId: String(queuedId), data: String(data), timestamp: String(timestamp) });
  }
  return { entries, fate: wordIn(fates, reply[0]) };
}
