import { type EgressUse, egressUse, redisKeys, type SandboxKey, sandboxKey, tenantOf } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { z } from "zod";

/** Per tenant, so that one tenant's entries do not push out another's. */
const kept = 1_000;
const keptMs = 30 * 86_400_000;

/** What a sandbox sent and received, and the jobs that ran meanwhile. No jobs: background processes sent it. */
export interface EgressEntry extends EgressUse {
  readonly id: string;
  readonly atMs: number;
  readonly sandbox: SandboxKey;
  readonly worker: string;
  readonly jobs: readonly string[];
}

const noted = egressUse.extend({
  sandbox: z.string().pipe(sandboxKey),
  worker: z.string(),
  jobs: z.array(z.string()).readonly(),
});

/** Which hosts the sandboxes of each tenant reached, for the audit log. */
export class EgressLog {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async note(
    sandbox: SandboxKey,
    worker: string,
    use: EgressUse & { jobs: readonly string[] },
  ): Promise<void> {
    const key = redisKeys.egressLog(tenantOf(sandbox));
    await this.#redis.xadd(key, "MAXLEN", "~", kept, "*", "d", JSON.stringify({ ...use, sandbox, worker }));
    await this.#redis.pexpire(key, keptMs);
  }

  /** The latest first. `before`: only entries older than that id. `owner`: a tenant, or `sharedOwner`. */
  async list(
    owner: string,
    { before, limit }: { readonly before?: string | undefined; readonly limit: number },
  ): Promise<EgressEntry[]> {
    const from = before === undefined ? "+" : `(${before}`;
    const entries = await this.#redis.xrevrange(redisKeys.egressLog(owner), from, "-", "COUNT", limit);
    return entries.map(([id, [, text = ""]]) => {
      const { moreHosts, ...use } = noted.parse(JSON.parse(text));
      return {
        id,
        atMs: Number(id.split("-")[0]),
        ...use,
        ...(moreHosts === undefined ? {} : { moreHosts }),
      };
    });
  }
}
