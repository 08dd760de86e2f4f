import type { Redis } from "@berth/redis";
import type { KeyRecord } from "../../packages/ledger/src/key-record.ts";
import { bullNames, bullQueues, entryFields } from "../../packages/ledger/src/queues/bull-records.ts";
import { describedKeys } from "../key-page.ts";
import type { TestRedis } from "./redis.ts";

type Kind = Pick<KeyRecord, "type"> & {
  readonly name: string;
  readonly pattern: RegExp;
  readonly fields?: Readonly<Record<string, string>> | undefined;
  readonly expires: boolean | "may";
};

const literal = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");

/** A pattern for a key of the page, with any text for `<…>`. A key of one sandbox may have more text behind the braces. */
function patternOf(spelled: string): RegExp {
  const parts = literal(spelled)
    .replaceAll(/\\\[.*?\\\]/g, "[^:]*")
    .replaceAll(/\\\{<[^>]+>\\\}/g, "\\{[^{}]*\\}(?:\\.[^:]+)?")
    .replaceAll(/<[^>]+>$/g, ".*")
    .replaceAll(/<[^>]+>/g, "[^:]*");
  return new RegExp(`^${parts}$`);
}

const own: Kind[] = describedKeys().map(({ key, record }) => ({
  ...{ name: key, pattern: patternOf(key), type: record.type, expires: record.expires },
  fields: record.type === "hash" ? record.fields : undefined,
}));
const ids = Object.entries(bullNames).filter(([name]) => name.startsWith("<entry>"));
const fixed = Object.entries(bullNames).filter(([name]) => !name.startsWith("<entry>"));
/** Keys with fixed names come before those with ids, since an id may be any text. */
const bull: Kind[] = bullQueues.flatMap(({ key }) =>
  [...fixed, ...ids.reverse()].map(([name, { type, holds }]) => ({
    ...{ name: `${key}:${name}`, pattern: patternOf(`${key}:${name}`), type },
    fields: name === "<entry>" ? entryFields : undefined,
    expires: holds.endsWith("; expires"),
  })),
);

const redisType = { "sorted set": "zset", "string (bits)": "string", channel: "none" } as const;

/** Described keys that belong to Berth itself, as the page spells them. */
export const ownNames: readonly string[] = own.map(({ name }) => name);

function kindOf(key: string): Kind | string {
  const found = own.filter(({ pattern }) => pattern.test(key));
  if (found.length > 1) return `${key} is described as ${found.map(({ name }) => name).join(" and ")}`;
  return found[0] ?? bull.find(({ pattern }) => pattern.test(key)) ?? `${key} is not described`;
}

/**
 * Every key that a single Redis changes from now on, also those that are gone again: Redis notifies of each change.
 */
export async function watchKeys(redis: TestRedis): Promise<ReadonlySet<string>> {
  const touched = new Set<string>();
  const listener = redis.connect();
  await listener.config("SET", "notify-keyspace-events", "KA");
  const prefix = "__keyspace@0__:";
  listener.on("pmessage", (_pattern, channel: string) => touched.add(channel.slice(prefix.length)));
  await listener.psubscribe(`${prefix}*`);
  return touched;
}

/** The names that the page has for these keys, and the problems of all others. */
export function namesOf(keys: Iterable<string>): { readonly names: Set<string>; readonly unknown: string[] } {
  const kinds = [...keys].map(kindOf);
  return {
    names: new Set(kinds.flatMap((kind) => (typeof kind === "string" ? [] : [kind.name]))),
    unknown: kinds.filter((kind) => typeof kind === "string").sort(),
  };
}

/** Differences between Redis and docs/redis-keys.md. `over`: all jobs have ended, so their keys must expire. */
export async function undescribed(redis: Redis, { over }: { readonly over: boolean }): Promise<string[]> {
  const problems = await Promise.all(
    (await redis.keys("*")).map(async (key) => {
      const kind = kindOf(key);
      return typeof kind === "string" ? [kind] : differences(redis, key, kind, over);
    }),
  );
  return problems.flat().sort();
}

async function differences(redis: Redis, key: string, kind: Kind, over: boolean): Promise<string[]> {
  const [type, left] = await Promise.all([redis.type(key), redis.pttl(key)]);
  // It expired or was removed meanwhile.
  if (type === "none" || left === -2) return [];
  const wanted = kind.type in redisType ? redisType[kind.type as keyof typeof redisType] : kind.type;
  if (type !== wanted) return [`${key} is a ${type}, and described as a ${kind.type}`];
  const problems: string[] = [];
  if (over && kind.expires === true && left === -1) problems.push(`${key} has no expiry`);
  if (kind.expires === false && left >= 0) problems.push(`${key} expires`);
  if (kind.fields === undefined || type !== "hash") return problems;
  const patterns = Object.keys(kind.fields).map(patternOf);
  for (const field of await redis.hkeys(key))
    if (!patterns.some((pattern) => pattern.test(field))) problems.push(`${key} has a field ${field}`);
  return problems;
}
