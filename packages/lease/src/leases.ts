import { redisKeys, type SandboxKey, sandboxKey, type WorkerId } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";

const count = z.number().int().min(0);

const takeReply = z.union([
  z
    .tuple([z.literal(1), count, count])
    .transform(([, epoch, deadlineMs]) => ({ taken: true as const, epoch, deadlineMs })),
  z
    .tuple([z.literal(0), count, count, z.string()])
    .transform(([, epoch, deadlineMs, worker]) => ({ taken: false as const, epoch, deadlineMs, worker })),
]);
const renewReply = z.union([
  z.tuple([z.literal(1), count]).transform(([, deadlineMs]) => ({ renewed: true as const, deadlineMs })),
  z.tuple([z.literal(0), count]).transform(([, epoch]) => ({ renewed: false as const, highestEpoch: epoch })),
]);
const releaseReply = z.union([
  z.tuple([z.literal(1), count]).transform(([, left]) => ({ state: "released" as const, left })),
  z.tuple([z.literal(2), count]).transform(([, left]) => ({ state: "kept" as const, left })),
  z.tuple([z.literal(0), count]).transform(([, epoch]) => ({ state: "lost" as const, highestEpoch: epoch })),
]);

/** `worker` is undefined when it was released, or never taken. `live`: by Redis' own clock. */
const markReply = z
  .tuple([z.union([z.literal(0), z.literal(1)]), count, count, z.string()])
  .transform(([live, epoch, deadlineMs, worker]) => ({
    live: live === 1,
    epoch,
    deadlineMs,
    worker: worker === "" ? undefined : worker,
  }));

export type LeaseState = z.infer<typeof markReply>;
export type TakeResult = z.infer<typeof takeReply>;
export type RenewResult = z.infer<typeof renewReply>;
export type ReleaseResult = z.infer<typeof releaseReply>;

function lua(name: string): URL {
  return new URL(`../lua/${name}.lua`, import.meta.url);
}

const take = new Script({ name: "take", file: lua("take"), parse: (reply) => takeReply.parse(reply) });
const renew = new Script({ name: "renew", file: lua("renew"), parse: (reply) => renewReply.parse(reply) });
const release = new Script({
  name: "release",
  file: lua("release"),
  parse: (reply) => releaseReply.parse(reply),
});
const mark = new Script({ name: "mark", file: lua("mark"), parse: (reply) => markReply.parse(reply) });
const unheld = new Script({
  name: "unheld",
  file: lua("unheld"),
  parse: (reply) => z.array(sandboxKey).parse(reply),
});

export interface Holder {
  readonly worker: WorkerId;
  /** Another for each process of that worker. */
  readonly instance: string;
}

/** Who may touch a sandbox, until when (by Redis' clock), and with which epoch. The authority; BullMQ's locks are not. */
export class Leases {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  take(key: SandboxKey, holder: Holder, lengthMs: number): Promise<TakeResult> {
    const keys = [redisKeys.lease(key), redisKeys.leases];
    return take.run(this.#redis, keys, [key, holder.worker, holder.instance, lengthMs]);
  }

  renew(key: SandboxKey, epoch: number, lengthMs: number): Promise<RenewResult> {
    return renew.run(this.#redis, [redisKeys.lease(key), redisKeys.leases], [key, epoch, lengthMs]);
  }

  /** `queueKeys`: the lists and sorted sets in which the sandbox's queue keeps jobs that are not finished. */
  release(
    key: SandboxKey,
    epoch: number,
    options: { readonly onlyIfEmpty: boolean; readonly queueKeys: readonly string[] },
  ): Promise<ReleaseResult> {
    const keys = [redisKeys.lease(key), redisKeys.leases, redisKeys.pending, ...options.queueKeys];
    return release.run(this.#redis, keys, [key, epoch, options.onlyIfEmpty ? "1" : "0"]);
  }

  /** Says that a sandbox has work. The sweep offers it until a release finds its queue empty. */
  markPending(key: SandboxKey): Promise<LeaseState> {
    return mark.run(this.#redis, [redisKeys.lease(key), redisKeys.pending], [key]);
  }

  /** Pending sandboxes without a live lease, the longest waiting first. */
  unheld(options: { readonly limit: number; readonly olderThanMs: number }): Promise<SandboxKey[]> {
    return unheld.run(
      this.#redis,
      [redisKeys.pending, redisKeys.leases],
      [options.limit, options.olderThanMs],
    );
  }
}
