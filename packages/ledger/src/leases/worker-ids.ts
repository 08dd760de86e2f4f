import { redisKeys, type WorkerId } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";

const claimReply = z.union([
  z.tuple([z.literal(1)]).transform(() => ({ ours: true as const })),
  z.tuple([z.literal(0), z.string()]).transform(([, by]) => ({ ours: false as const, by })),
]);
export type ClaimResult = z.infer<typeof claimReply>;

const claim = new Script({
  name: "claim",
  file: new URL("../../lua/claim.lua", import.meta.url),
  parse: (reply) => claimReply.parse(reply),
});
const leave = new Script({
  name: "leave",
  file: new URL("../../lua/leave.lua", import.meta.url),
  parse: (reply) => z.literal([0, 1]).parse(reply) === 1,
});

const answer = new Script({
  name: "answer",
  file: new URL("../../lua/answer.lua", import.meta.url),
  parse: (reply) => z.literal(1).parse(reply),
});

/** What a worker says of itself, for people, autoscalers, and its next life. */
export type WorkerWords = Readonly<Record<string, string | number>>;

/** One process of a worker. */
export interface WorkerLife {
  readonly worker: WorkerId;
  readonly instance: string;
}

/** Which process speaks for which worker id: at most one at a time. */
export class WorkerIds {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Again and again while it lives. `replacing`: a life that is over, or does not answer. */
  claim(
    { worker, instance }: WorkerLife,
    options: {
      readonly replacing?: string | undefined;
      readonly keptMs: number;
      /** Whether it is among the workers that are seen. */
      readonly seen: boolean;
      readonly says: WorkerWords;
    },
  ): Promise<ClaimResult> {
    const { replacing = "", keptMs, seen, says } = options;
    const words = Object.entries(says).flat();
    return claim.run(
      this.#redis,
      [...this.#keys(worker), redisKeys.writes],
      [...[worker, instance, replacing, keptMs, seen ? "1" : "0"], ...words],
    );
  }

  /** What its present life says of itself. */
  async words(worker: WorkerId): Promise<Record<string, string>> {
    return await this.#redis.hgetall(redisKeys.worker(worker));
  }

  /** Answers the ping of that id. */
  async answer(id: string, says: WorkerWords, keptMs: number): Promise<void> {
    await answer.run(this.#redis, [redisKeys.answer(id)], [JSON.stringify(says), keptMs]);
  }

  leave({ worker, instance }: WorkerLife): Promise<boolean> {
    return leave.run(this.#redis, this.#keys(worker), [worker, instance]);
  }

  #keys(worker: WorkerId): string[] {
    return [redisKeys.worker(worker), redisKeys.workers];
  }
}
