import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { redisKeys } from "@berth/protocol";
import type { Redis } from "ioredis";
import { redisFault } from "./refusal.ts";
import { Replicated } from "./replicated.ts";
import { nodeOf, type Topology, topologyOf } from "./topology.ts";

type ScriptArgument = string | number | Buffer;

export interface ScriptOptions<R> {
  readonly name: string;
  /** A `.lua` file whose header names its KEYS, ARGV and replies. */
  readonly file: URL;
  /** Parses a reply. Throws on an unknown one. */
  readonly parse: (reply: unknown) => R;
}

/**
 * A line `--- @include name.lua` inserts the file of that name from the same folder. `'@name'` is the key of that name, with `%s`
 * for its parameters; `'@topology'` is `'single'` or `'cluster'`.
 */
function sourceOf(file: URL, topology: Topology): string {
  return readFileSync(file, "utf8")
    .replace(/^--- @include (\S+)$/gm, (_line, name: string) => sourceOf(new URL(name, file), topology))
    .replace(/'@(\w+)'/g, (_text, name: string) => `'${name === "topology" ? topology : keyPattern(name)}'`);
}

function keyPattern(name: string): string {
  const key = new Map<string, unknown>(Object.entries(redisKeys)).get(name);
  if (typeof key === "string") return key;
  if (typeof key !== "function") throw new TypeError(`no key in Redis is called ${name}`);
  return String(key(...Array(key.length).fill("%s")));
}

interface Text {
  readonly source: string;
  readonly sha1: string;
}

function textOf(file: URL, topology: Topology): Text {
  const source = sourceOf(file, topology);
  let sha1: string | undefined;
  return {
    source,
    get sha1() {
      sha1 ??= hash("sha1", source);
      return sha1;
    },
  };
}

/** A Lua script. The file is read on the first run: a short CLI command runs few of the scripts it imports. */
export class Script<R> {
  readonly #name: string;
  readonly #file: URL;
  readonly #texts = new Map<Topology, Text>();
  readonly #parse: (reply: unknown) => R;
  /** Connections on which Redis has the script. A new connection may reach a Redis that restarted. */
  readonly #loadedOn = new WeakSet<object>();

  constructor({ name, file, parse }: ScriptOptions<R>) {
    this.#name = name;
    this.#file = file;
    this.#parse = parse;
  }

  async run(redis: Redis, keys: readonly string[], args: readonly ScriptArgument[]): Promise<R> {
    let reply: unknown;
    try {
      const topology = topologyOf(redis);
      const text = this.#textFor(typeof topology === "string" ? topology : await topology);
      reply = await this.#send(redis, text, keys, args);
    } catch (error) {
      throw redisFault(this.#name, error);
    }
    try {
      return this.#parse(reply);
    } catch (error) {
      throw redisFault(this.#name, error);
    }
  }

  /** Like `run`, for a write whose answer a program acts on: with `BERTH_ACCEPT=replicated` it counts once replicas have it. */
  runAccepted(redis: Redis, keys: readonly string[], args: readonly ScriptArgument[]): Promise<R> {
    const replicated = Replicated.of(redis);
    if (!replicated) return this.run(redis, keys, args);
    return replicated
      .make(keys[0] ?? "", (primary) => this.run(primary, keys, args))
      .catch((error) => {
        throw redisFault(this.#name, error);
      });
  }

  #textFor(topology: Topology): Text {
    const text = this.#texts.get(topology) ?? textOf(this.#file, topology);
    this.#texts.set(topology, text);
    return text;
  }

  /**
   * Sends the source until this connection has answered once. A hash that Redis does not know would have to be resent, and later
   * calls would overtake it.
   */
  async #send(
    redis: Redis,
    { source, sha1 }: Text,
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<unknown> {
    const before = (nodeOf(redis, keys[0] ?? "") ?? redis).stream;
    if (before && this.#loadedOn.has(before)) {
      try {
        return await redis.evalsha(sha1, keys.length, ...keys, ...args);
      } catch (error) {
        // SCRIPT FLUSH removed it.
        if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
      }
    }
    const reply = await redis.eval(source, keys.length, ...keys, ...args);
    const after = (nodeOf(redis, keys[0] ?? "") ?? redis).stream;
    if (after) this.#loadedOn.add(after);
    return reply;
  }
}
