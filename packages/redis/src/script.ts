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

  constructor({ name, file, parse }: ScriptOptions<R>) {
    this.#name = name;
    this.#source = sourceOf(file);
    this.#sha1 = createHash("sha1").update(this.#source).digest("hex");
    this.#parse = parse;
  }

  async run(redis: Redis, keys: readonly string[], args: readonly ScriptArgument[]): Promise<R> {
    let reply: unknown;
    try {
      reply = await redis.evalsha(this.#sha1, keys.length, ...keys, ...args);
    } catch (error) {
      // Redis forgets its scripts when it restarts.
      if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT"))
        throw redisFault(this.#name, error);
      try {
        reply = await redis.eval(this.#source, keys.length, ...keys, ...args);
      } catch (again) {
        throw redisFault(this.#name, again);
      }
    }
    try {
      return this.#parse(reply);
    } catch (error) {
      throw redisFault(this.#name, error);
    }
  }
}
