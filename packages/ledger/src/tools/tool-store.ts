import { Fault, problemsOf, redisKeys, type ToolDefinition, toolDefinition } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";

const mostTools = 256;
/** As JSON. */
const longestDefinition = 128 * 1024;

const entry = z.object({
  version: z.number().int(),
  atMs: z.number(),
  by: z.string(),
  definition: z.record(z.string(), z.unknown()),
});

/** A custom tool as it is now. */
export interface StoredTool {
  readonly name: string;
  /** Grows with every change; 1 at first. */
  readonly version: number;
  readonly atMs: number;
  readonly by: string;
  readonly definition: ToolDefinition;
}

export interface SetToolOptions {
  /** The administrator who sets it. */
  readonly by: string;
  /** Refuses if the tool has another version; 0: if there is one. */
  readonly ifVersion?: number | undefined;
}

const change = new Script({
  name: "tool-set",
  file: new URL("../../lua/tool-set.lua", import.meta.url),
  parse: (reply) => z.tuple([z.enum(["set", "removed", "changed", "full"]), z.number()]).parse(reply),
});

/** The custom tools of the fleet. Workers look one up when a job calls it, so a change counts for the next job. */
export class ToolStore {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Ordered by their names. One that a newer version of Berth wrote and this one cannot read is left out. */
  async list(): Promise<StoredTool[]> {
    const all = await this.#redis.hgetall(redisKeys.tools);
    return Object.entries(all)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([name, text]) => readEntry(name, text) ?? []);
  }

  async get(name: string): Promise<StoredTool | undefined> {
    const text = await this.#redis.hget(redisKeys.tools, name);
    return text === null ? undefined : readEntry(name, text);
  }

  /** The definitions of those names that exist. */
  async definitions(names: readonly string[]): Promise<ReadonlyMap<string, ToolDefinition>> {
    const texts = await this.#redis.hmget(redisKeys.tools, ...names);
    const found = names.flatMap((name, index) => {
      const text = texts[index];
      const stored = typeof text === "string" ? readEntry(name, text) : undefined;
      return stored ? [[name, stored.definition] as const] : [];
    });
    return new Map(found);
  }

  /** Throws `invalid-tool` with every problem; then nothing is changed. */
  async set(name: string, definition: unknown, { by, ifVersion }: SetToolOptions): Promise<StoredTool> {
    const parsed = toolDefinition.safeParse(definition);
    if (!parsed.success) throw invalidTool(name, problemsOf(parsed.error));
    const text = JSON.stringify(parsed.data);
    if (text.length > longestDefinition)
      throw invalidTool(name, [`it is ${text.length} bytes as JSON; at most ${longestDefinition}`]);
    const who = by.slice(0, 256);
    const [answer, count] = await this.#change(name, text, JSON.stringify(who), ifVersion);
    if (answer === "changed")
      throw invalidTool(name, [`it is at version ${count}, not ${ifVersion}; look at it again`]);
    if (answer === "full")
      throw invalidTool(name, [`there are ${count} tools already; at most ${mostTools}`]);
    return { name, version: count, atMs: Date.now(), by: who, definition: parsed.data };
  }

  /** False: there was none. */
  async remove(name: string): Promise<boolean> {
    const [, version] = await this.#change(name, "", '""');
    return version > 0;
  }

  #change(name: string, text: string, who: string, ifVersion?: number) {
    return change.run(this.#redis, [redisKeys.tools], [name, text, who, mostTools, ifVersion ?? ""]);
  }
}

function invalidTool(tool: string, problems: readonly string[]): Fault {
  return new Fault("invalid-tool", { tool, problems });
}

function readEntry(name: string, text: string): StoredTool | undefined {
  const { definition, ...rest } = entry.parse(JSON.parse(text));
  const parsed = toolDefinition.safeParse(definition);
  return parsed.success ? { name, ...rest, definition: parsed.data } : undefined;
}
