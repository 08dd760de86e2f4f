import { redisKeys, type WorkerId } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { type WorkerStatus, workerFields } from "../fleet/worker-record.ts";

const claimReply = z.union([
  z.tuple([z.literal("ours")]).transform(() => ({ ours: true as const })),
  z.tuple([z.literal("taken"), z.string()]).transform(([, by]) => ({ ours: false as const, by })),
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

/** One process of a worker. */
export interface WorkerInstance {
  readonly worker: WorkerId;
  readonly instance: string;
}

/** Claims on worker ids: at most one process has each. */
export class WorkerIds {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Heartbeat: claims or renews the id, and publishes the status. `replacing`: an earlier process that is dead or does not answer. */
  claim(
    { worker, instance }: WorkerInstance,
    options: {
      readonly replacing?: string | undefined;
      readonly keptMs: number;
      /** Whether it is listed among the workers. */
      readonly seen: boolean;
      readonly status: WorkerStatus;
    },
  ): Promise<ClaimResult> {
    const { replacing = "", keptMs, seen, status } = options;
    const fields = Object.entries(workerFields(status)).flat();
    return claim.run(
      this.#redis,
      [...this.#keys(worker), redisKeys.writes],
      [worker, instance, replacing, keptMs, seen ? "1" : "0", ...fields],
    );
  }

  /** Answers the ping of that id. */
  async answer(
    id: string,
    { instance }: WorkerInstance,
    status: WorkerStatus,
    keptMs: number,
  ): Promise<void> {
    const text = JSON.stringify({ ...workerFields(status), instance });
    await answer.run(this.#redis, [redisKeys.answer(id)], [text, keptMs]);
  }

  leave({ worker, instance }: WorkerInstance): Promise<boolean> {
    return leave.run(this.#redis, this.#keys(worker), [worker, instance]);
  }

  #keys(worker: WorkerId): string[] {
    return [redisKeys.worker(worker), redisKeys.workers];
  }
}
