import type { ChildProcess } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { connectRedis, type Redis } from "@berth/redis";
import { expect } from "vitest";
import { startRedisServer } from "./program.ts";

export interface RedisServerOptions {
  /** It keeps its files there. */
  readonly directory: string;
  /** Of this server alone, whatever it is part of. */
  readonly url: string;
  readonly args: readonly string[];
}

/** One redis-server process, or a Sentinel, of a test's own. */
export class RedisServer {
  readonly url: string;
  readonly directory: string;
  readonly #args: readonly string[];
  #process: ChildProcess | undefined;
  #frozen = false;

  constructor({ directory, url, args }: RedisServerOptions) {
    this.directory = directory;
    this.url = url;
    this.#args = args;
  }

  get alive(): boolean {
    return this.#process !== undefined;
  }

  /** Until it answers. */
  async start(): Promise<void> {
    await mkdir(this.directory, { recursive: true });
    this.#process = startRedisServer(this.#args, this.directory);
    await this.ask((redis) => redis.ping());
  }

  /** kill -9, of a process that may be frozen. What it has answered need not be on its disk. */
  async kill(): Promise<void> {
    const server = this.#process;
    this.#process = undefined;
    this.#frozen = false;
    if (!server || server.exitCode !== null) return;
    const gone = new Promise((resolve) => server.once("exit", resolve));
    server.kill("SIGKILL");
    await gone;
  }

  /** What it has answered is on its disk from now on: it writes everything before it sends its next answer. */
  async flush(): Promise<void> {
    if (this.alive && !this.#frozen) await this.ask((redis) => redis.config("SET", "appendfsync", "always"));
  }

  freeze(): void {
    this.#frozen = true;
    this.#process?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#frozen = false;
    this.#process?.kill("SIGCONT");
  }

  /** As with a full disk: it answers, and refuses every write (MISCONF), since it could not save. */
  async refuseWrites(): Promise<void> {
    // A directory where it wants to put its snapshot. Without a rule for saving it would not mind.
    await rm(join(this.directory, "dump.rdb"), { force: true });
    await mkdir(join(this.directory, "dump.rdb", "in-the-way"), { recursive: true });
    await this.ask((redis) => redis.config("SET", "save", "86400 1"));
    await this.#saves("err");
  }

  async acceptWrites(): Promise<void> {
    await rm(join(this.directory, "dump.rdb"), { recursive: true });
    await this.#saves("ok");
  }

  /** Over a connection of its own. */
  async ask<T>(question: (redis: Redis) => Promise<T>): Promise<T> {
    const redis = connectRedis({ url: this.url, role: "blocking" });
    try {
      return await question(redis);
    } finally {
      redis.disconnect();
    }
  }

  async #saves(status: "ok" | "err"): Promise<void> {
    await this.ask(async (redis) => {
      await redis.bgsave();
      const saved = async () => (await redis.info("persistence")).includes(`bgsave_status:${status}`);
      await expect.poll(saved, { timeout: 30_000 }).toBe(true);
    });
  }
}
