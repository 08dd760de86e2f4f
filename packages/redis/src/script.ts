import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";
import { redisFault } from "./refusal.ts";

type ScriptArgument = string | number | Buffer;

export interface ScriptOptions<R> {
  readonly name: string;
  /** A `.lua` file whose header names its KEYS, ARGV and replies. */
  readonly file: URL;
  /** Replies are parsed, not cast. Throws on anything it does not know. */
  readonly parse: (reply: unknown) => R;
}

/** A line `--- @include name.lua` stands for the file of that name beside it. */
function sourceOf(file: URL): string {
  const including = /^--- @include (\S+)$/gm;
  return readFileSync(file, "utf8").replace(including, (_line, name: string) =>
    sourceOf(new URL(name, file)),
  );
}

/** One change that Redis makes as a whole. */
export class Script<R> {
  readonly #name: string;
  readonly #source: string;
  readonly #sha1: string;
  readonly #parse: (reply: unknown) => R;
  /** Connections on which Redis is known to have it. One that is made anew may reach a Redis that restarted. */
  readonly #loadedOn = new WeakSet<object>();

  constructor({ name, file, parse }: ScriptOptions<R>) {
    this.#name = name;
    this.#source = sourceOf(file);
    this.#sha1 = createHash("sha1").update(this.#source).digest("hex");
    this.#parse = parse;
  }

  async run(redis: Redis, keys: readonly string[], args: readonly ScriptArgument[]): Promise<R> {
    let reply: unknown;
    try {
      reply = await this.#send(redis, keys, args);
    } catch (error) {
      throw redisFault(this.#name, error);
    }
    try {
      return this.#parse(reply);
    } catch (error) {
      throw redisFault(this.#name, error);
    }
  }

  /**
   * With its source until this connection has answered once. A hash that Redis does not know would have to be sent again, and
   * calls behind it would overtake it.
   */
  async #send(redis: Redis, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    if (this.#loadedOn.has(redis.stream ?? redis)) {
      try {
        return await redis.evalsha(this.#sha1, keys.length, ...keys, ...args);
      } catch (error) {
        // Its scripts were flushed.
        if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
      }
    }
    const reply = await redis.eval(this.#source, keys.length, ...keys, ...args);
    this.#loadedOn.add(redis.stream ?? redis);
    return reply;
  }
}
