import { redisKeys } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";

/** An entry of the results, as one consumer of a group got it. */
export interface SharedEntry {
  readonly id: string;
  readonly fields: readonly Buffer[];
}

type RawEntry = readonly [id: Buffer, fields: Buffer[] | null] | null;

const stream = redisKeys.results;
const openGroup = new Script({
  name: "results-group",
  file: new URL("../../lua/results-group.lua", import.meta.url),
  parse: (reply) => {
    if (typeof reply !== "number") throw new TypeError("not a count");
    return reply;
  },
});
const holdEntries = new Script({
  name: "results-hold",
  file: new URL("../../lua/results-hold.lua", import.meta.url),
  parse: (reply) => {
    if (!Array.isArray(reply)) throw new TypeError("not a list of ids");
    return new Set(reply.map(String));
  },
});

/** One consumer's share of the results stream, call by call. */
export class ResultShare {
  readonly #commands: Redis;
  readonly #blocking: Redis;
  readonly #group: string;
  readonly #consumer: string;
  readonly #batch: number;
  #counts = true;
  #lost = 0;

  constructor(commands: Redis, blocking: Redis, who: { group: string; consumer: string; batch: number }) {
    this.#commands = commands;
    this.#blocking = blocking;
    this.#group = who.group;
    this.#consumer = who.consumer;
    this.#batch = who.batch;
  }

  /** Entries that Redis trimmed before they were acknowledged; undefined: this Redis does not count them. */
  get lost(): number | undefined {
    return this.#counts ? this.#lost : undefined;
  }

  /** Creates the group if it is missing, and counts the entries that it missed. */
  async open(from: "0" | "$"): Promise<void> {
    const missed = await openGroup.run(this.#commands, [stream], [this.#group, from]);
    this.#counts = missed >= 0;
    this.#lost += Math.max(0, missed);
  }

  /** Entries that this consumer got and did not acknowledge. */
  async pending(after: string): Promise<{ entries: SharedEntry[]; last: string | undefined }> {
    const reply = await this.#blocking.xreadgroupBuffer(...this.#as(), "STREAMS", stream, after);
    const raw = reply?.[0]?.[1] ?? [];
    return { entries: await this.#there(raw), last: raw.at(-1)?.[0].toString() };
  }

  async fresh(waitMs: number): Promise<SharedEntry[]> {
    const reply = await this.#blocking.xreadgroupBuffer(
      ...this.#as(),
      "BLOCK",
      waitMs,
      "STREAMS",
      stream,
      ">",
    );
    return this.#there(reply?.[0]?.[1] ?? []);
  }

  /** Results that a consumer of the group, alive or not, has not acknowledged for so long. `next` is `0-0` when that was all. */
  async claim(idleMs: number, after: string): Promise<{ entries: SharedEntry[]; next: string }> {
    const args = [stream, this.#group, this.#consumer, idleMs, after, "COUNT", this.#batch];
    const reply = await this.#commands.callBuffer("XAUTOCLAIM", args);
    const [next, raw, deleted] = reply as [Buffer, RawEntry[], Buffer[] | undefined];
    this.#lost += deleted?.length ?? 0;
    return { entries: await this.#there(raw), next: next.toString() };
  }

  /** Renews this consumer's claim on its entries. */
  async hold(entries: readonly SharedEntry[]): Promise<SharedEntry[]> {
    const ids = entries.map(({ id }) => id);
    const held = await holdEntries.run(this.#commands, [stream], [this.#group, this.#consumer, ...ids]);
    return entries.filter(({ id }) => held.has(id));
  }

  async ack(...ids: string[]): Promise<void> {
    await this.#commands.xack(stream, this.#group, ...ids);
  }

  #as() {
    return ["GROUP", this.#group, this.#consumer, "COUNT", this.#batch] as const;
  }

  /** An entry without fields was trimmed since its first delivery: it is lost. */
  async #there(raw: readonly RawEntry[]): Promise<SharedEntry[]> {
    const there: SharedEntry[] = [];
    const gone: string[] = [];
    for (const entry of raw) {
      if (entry?.[1]) there.push({ id: entry[0].toString(), fields: entry[1] });
      else if (entry) gone.push(entry[0].toString());
    }
    this.#lost += gone.length;
    if (gone.length > 0) await this.ack(...gone);
    return there;
  }
}
