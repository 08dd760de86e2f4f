import { Fault, redisKeys } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { readCeilings } from "../fleet/tenant-ceilings.ts";
import type { FieldOf } from "../key-record.ts";
import { claimDue } from "./claim-due.ts";
import type { batchRecords } from "./records.ts";

/** Expiry of an open batch, counted from the last time a gateway looked at it. */
const openKeptMs = 7 * 24 * 3_600_000;
const overKeptMs = 2 * 24 * 3_600_000;
const listedMost = 10_000;
const listedOfOwner = 1_000;
const pageSize = 200;

const count = z.coerce.number().default(0);
const webhookState = z.enum(["waiting", "delivered", "given-up"]);
const stored = z.object({
  owner: z.string().describe("the tenant; nothing for an admin's"),
  state: z.enum(["uploading", "running", "cancelling", "finished"]),
  total: z.coerce.number().optional(),
  submitted: count,
  finished: count,
  failed: count,
  refused: count,
  createdAtMs: z.coerce.number(),
  finishedAtMs: z.coerce.number().optional(),
  uploadAtMs: count,
  cancelledAtMs: z.coerce.number().optional(),
  cancelledTo: count,
  webhook: z.string().optional(),
  webhookState: webhookState.optional(),
  webhookTries: count,
  webhookProblem: z
    .string()
    .transform((text) => (text === "" ? undefined : text))
    .optional(),
} satisfies Record<FieldOf<typeof batchRecords.batch>, z.ZodType>);
export type StoredBatch = z.infer<typeof stored> & { readonly id: string };

const advance = new Script({
  name: "batch-advance",
  file: new URL("../../lua/batch-advance.lua", import.meta.url),
  parse: (reply) => z.tuple([z.literal(["gone", "noted", "known", "over"])]).parse(reply)[0],
});

const done = z.union([z.literal(0), z.literal(1)]);
const openBatch = new Script({
  name: "batch-open",
  file: new URL("../../lua/batch-open.lua", import.meta.url),
  parse: (reply) =>
    z
      .union([
        z.tuple([z.literal(["made", "known"])]),
        z.tuple([z.literal("full"), z.enum(["batches", "webhooks"]), z.number()]),
      ])
      .parse(reply),
});
const cancelBatch = new Script({
  name: "batch-cancel",
  file: new URL("../../lua/batch-cancel.lua", import.meta.url),
  parse: (reply) => done.parse(reply),
});

const noteInBatch = new Script({
  name: "batch-note",
  file: new URL("../../lua/batch-note.lua", import.meta.url),
  parse: (reply) => done.parse(reply),
});
const refuseInBatch = new Script({
  name: "batch-refuse",
  file: new URL("../../lua/batch-refuse.lua", import.meta.url),
  parse: (reply) => done.parse(reply),
});

export interface BatchEnd {
  readonly index: number;
  /** Undefined for an order that was not accepted. */
  readonly key: string | undefined;
}

/**
 * Batches as Redis has them: counts, which jobs have ended, and in which order. The jobs and their results are where any
 * job's are.
 *
 *   uploading ──all orders are in──▶ running ──all have ended──▶ finished
 *       └──────────┴────────── cancel ──▶ cancelling ──────────────▲
 */
export class BatchStore {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Returns the batch unchanged if it exists: an upload that is sent again goes on. */
  async open(id: string, owner: string, webhook: string | undefined): Promise<StoredBatch> {
    const keys = [
      redisKeys.batch(id),
      redisKeys.batches,
      redisKeys.batchesOpen,
      redisKeys.batchesOf(owner),
      redisKeys.batchesOpenOf(owner),
      redisKeys.webhooksOf(owner),
    ];
    // Batches of admin keys belong to no tenant and have no ceilings.
    const limits = owner === "" ? { batches: 0, webhooks: 0 } : await readCeilings(this.#redis, owner);
    const { batches, webhooks } = limits;
    const about = [id, Date.now(), owner, webhook ?? "", openKeptMs, listedMost, listedOfOwner];
    const answer = await openBatch.run(this.#redis, keys, [...about, batches, webhooks]);
    if (answer[0] === "full") {
      const [, ceiling, used] = answer;
      throw new Fault("tenant-full", { tenant: owner, ceiling, used, limit: limits[ceiling] });
    }
    await this.touch(id);
    const known = await this.get(id);
    if (!known) throw new Error(`the batch ${id} is gone right after it was made`);
    return known;
  }

  async get(id: string): Promise<StoredBatch | undefined> {
    const parsed = stored.safeParse(await this.#redis.hgetall(redisKeys.batch(id)));
    return parsed.success ? { ...parsed.data, id } : undefined;
  }

  /** The newest first; those of one owner, or all. */
  async list(owner: string | undefined, limit: number): Promise<StoredBatch[]> {
    const index = owner === undefined ? redisKeys.batches : redisKeys.batchesOf(owner);
    const found: StoredBatch[] = [];
    const gone: string[] = [];
    for (let from = 0; found.length < limit; from += pageSize) {
      const ids = await this.#redis.zrevrange(index, from, from + pageSize - 1);
      const known = await Promise.all(ids.map((id) => this.get(id)));
      found.push(...known.filter((one) => one !== undefined));
      gone.push(...ids.filter((_, at) => known[at] === undefined));
      if (ids.length < pageSize) break;
    }
    if (gone.length > 0) await this.#redis.zrem(index, ...gone);
    return found.slice(0, limit);
  }

  /** Records that a job of the batch has ended. Idempotent: the same end may be passed any number of times. */
  async noteEnd(
    id: string,
    end: BatchEnd & { readonly failed: boolean },
  ): Promise<"unknown" | "noted" | "over"> {
    const answer = await this.#advance(id, [end.index, end.key ?? "", end.failed ? "1" : "0", ""]);
    return answer === "gone" ? "unknown" : answer === "over" ? "over" : "noted";
  }

  /** An order that was not accepted: it ends here, with the reason. */
  async noteRefused(id: string, index: number, problem: string): Promise<void> {
    const keys = [redisKeys.batch(id), redisKeys.batchRefused(id)];
    await refuseInBatch.run(this.#redis, keys, [index, problem]);
    await this.noteEnd(id, { index, key: undefined, failed: true });
  }

  /** Heartbeat of an upload. If it stops, the gateway or the sender is gone. */
  async noteSubmitted(id: string, count: number): Promise<void> {
    await this.#note(id, { submitted: count, uploadAtMs: Date.now() });
  }

  /** All orders are in. */
  async noteUploaded(id: string, total: number): Promise<void> {
    await this.noteSubmitted(id, total);
    await this.#advance(id, ["", "", "0", total]);
  }

  /** Marks it cancelled; from here on any gateway may cancel its jobs. False: it has ended. */
  async cancel(id: string): Promise<boolean> {
    const keys = [redisKeys.batch(id), redisKeys.batchesOpen];
    return (await cancelBatch.run(this.#redis, keys, [id, Date.now()])) === 1;
  }

  /** Ids of open batches that are due for a look. No other gateway gets them for `holdMs`. */
  claimOpen(options: { readonly holdMs: number; readonly limit: number }): Promise<string[]> {
    return claimDue(this.#redis, redisKeys.batchesOpen, options);
  }

  /** Removes a batch whose records have expired from the open ones. */
  async dropOpen(id: string): Promise<void> {
    await this.#redis.zrem(redisKeys.batchesOpen, id);
  }

  /** Keeps other gateways from an open batch for `holdMs`. */
  async holdOpen(id: string, holdMs: number): Promise<void> {
    await this.#redis.zadd(redisKeys.batchesOpen, "XX", Date.now() + holdMs, id);
  }

  async noteCancelledTo(id: string, index: number): Promise<void> {
    await this.#note(id, { cancelledTo: index });
  }

  async noteWebhook(
    id: string,
    {
      state,
      tries,
      problem,
    }: { state: z.infer<typeof webhookState>; tries: number; problem: string | undefined },
  ): Promise<void> {
    await this.#note(id, { webhookState: state, webhookTries: tries, webhookProblem: problem ?? "" });
  }

  /** Ends in their order, from a position. */
  async ends(id: string, from: number, limit: number): Promise<BatchEnd[]> {
    const entries = await this.#redis.lrange(redisKeys.batchEnds(id), from, from + limit - 1);
    return entries.map((entry) => {
      const [index = "0", key = ""] = entry.split(" ");
      return { index: Number(index), key: key === "" ? undefined : key };
    });
  }

  async refusedProblem(id: string, index: number): Promise<string> {
    return (await this.#redis.hget(redisKeys.batchRefused(id), String(index))) ?? "it was not accepted";
  }

  /** Of `limit` indexes from one on, those whose end is not known. */
  async notEnded(id: string, from: number, limit: number): Promise<number[]> {
    const firstByte = Math.floor(from / 8);
    const lastByte = Math.floor((from + limit - 1) / 8);
    const bits = await this.#redis.getrangeBuffer(redisKeys.batchDone(id), firstByte, lastByte);
    return Array.from({ length: limit }, (_, offset) => from + offset).filter((index) => {
      const byte = bits[Math.floor(index / 8) - firstByte] ?? 0;
      return (byte & (0x80 >> (index % 8))) === 0;
    });
  }

  /** The first index whose end is not known. */
  async firstNotEnded(id: string): Promise<number> {
    return Math.max(0, await this.#redis.bitpos(redisKeys.batchDone(id), 0));
  }

  async touch(id: string): Promise<void> {
    const keys = [
      redisKeys.batch(id),
      redisKeys.batchDone(id),
      redisKeys.batchEnds(id),
      redisKeys.batchRefused(id),
    ];
    await Promise.all(keys.map((key) => this.#redis.pexpire(key, openKeptMs)));
  }

  async #note(id: string, fields: Partial<Record<keyof StoredBatch, string | number>>): Promise<void> {
    await noteInBatch.run(this.#redis, [redisKeys.batch(id)], Object.entries(fields).flat());
  }

  #advance(id: string, what: readonly [index: number | "", key: string, failed: string, total: number | ""]) {
    const keys = [
      redisKeys.batch(id),
      redisKeys.batchDone(id),
      redisKeys.batchEnds(id),
      redisKeys.batchRefused(id),
      redisKeys.batchesOpen,
      redisKeys.webhookOwners,
    ];
    return advance.run(this.#redis, keys, [id, Date.now(), overKeptMs, ...what]);
  }
}

/** The job ids of a batch: no caller can choose one that looks like it. */
export function batchJobId(id: string, index: number): string {
  return `${id}-${index}`;
}

export function batchOf(jobId: string): { readonly id: string; readonly index: number } | undefined {
  const [, id, index] = /^(bat_[A-Za-z0-9_-]+)-(\d+)$/.exec(jobId) ?? [];
  return id === undefined ? undefined : { id, index: Number(index) };
}
