import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { formsOf } from "@berth/scrub";
import type { TestFleet } from "./fleet.ts";

/** Names of the texts that contain one of the values, in any encoding that is masked. */
export function exposedIn(
  texts: Readonly<Record<string, string | Buffer>>,
  values: readonly string[],
): string[] {
  const forms = values.flatMap((value) => formsOf(Buffer.from(value)));
  return Object.entries(texts).flatMap(([name, text]) => {
    const bytes = Buffer.from(text as string);
    return forms.some((form) => bytes.includes(form)) ? [name] : [];
  });
}

/** Everything in Redis: each key's name and all that it holds. */
export async function redisDump(fleet: TestFleet): Promise<Record<string, Buffer>> {
  const redis = fleet.redis.connect();
  const dump: Record<string, Buffer> = {};
  for (const key of await redis.keys("*")) dump[`redis ${key}`] = await bytesAt(redis, key);
  return dump;
}

async function bytesAt(redis: ReturnType<TestFleet["redis"]["connect"]>, key: string): Promise<Buffer> {
  const name = Buffer.from(`${key}\n`);
  const calls: Record<string, readonly [string, ...string[]]> = {
    string: ["GET", key],
    hash: ["HGETALL", key],
    list: ["LRANGE", key, "0", "-1"],
    set: ["SMEMBERS", key],
    zset: ["ZRANGE", key, "0", "-1"],
    stream: ["XRANGE", key, "-", "+"],
  };
  const [command, ...args] = calls[await redis.type(key)] ?? ["GET", key];
  return Buffer.concat([name, flat(await redis.callBuffer(command, ...args))]);
}

function flat(reply: unknown): Buffer {
  if (Buffer.isBuffer(reply)) return Buffer.concat([reply, Buffer.from("\n")]);
  if (Array.isArray(reply)) return Buffer.concat(reply.map(flat));
  return Buffer.alloc(0);
}

/** Every file beneath a directory. */
export async function filesBelow(directory: string): Promise<Record<string, Buffer>> {
  const found = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const read = files.map(async (path) => [`file ${path}`, await readFile(path)] as const);
  return Object.fromEntries(await Promise.all(read));
}

/** The command lines of every process of this machine. */
export async function commandLines(): Promise<Record<string, Buffer>> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const read = pids.map(async (pid) => {
    const line = await readFile(`/proc/${pid}/cmdline`).catch(() => Buffer.alloc(0));
    return [`process ${pid}`, line] as const;
  });
  return Object.fromEntries(await Promise.all(read));
}
