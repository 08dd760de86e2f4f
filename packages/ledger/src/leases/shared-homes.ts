import { Fault, redisKeys, type SandboxKey, tenantOf } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { giveHome, type Noter, readHome } from "./lease-record.ts";

/** What sandboxes of one tenant share: its tools, one agent's directory, or a peer's files. */
export type Shared = "tools" | `agent.${string}` | `team.${string}`;
/** Ties a sandbox to a host; the snapshot that its files come from does so too. */
type Tie = Shared | `snapshot.${string}`;

/**
 * Under local storage, the host that has what a tenant's sandboxes share. The first sandbox that needs it decides; all others that need
 * it live on that host from then on.
 */
export class SharedHomes {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /**
   * Ties the sandbox to what it shares. Throws `tied-elsewhere` when another host has that, which then is the sandbox's home; or
   * `home-conflict` when the sandbox has its files on a third.
   */
  async tie(noter: Noter, shared: readonly Shared[], host: string): Promise<void> {
    for (const what of shared) {
      const owner = await this.#ownerOf(noter.key, what, host);
      if (owner !== host) await this.sendTo(noter, what, owner);
    }
  }

  /** Makes the host that has it the sandbox's home, which this one is not. Always throws, as `tie` does. */
  async sendTo(noter: Noter, what: Tie, owner: string): Promise<never> {
    const { key } = noter;
    const home = await giveHome(this.#redis, noter, owner);
    if (home === owner) throw new Fault("tied-elsewhere", { sandboxKey: key, shared: what, host: owner });
    throw new Fault("home-conflict", { sandboxKey: key, home, shared: what, host: owner });
  }

  /** A peer's files have the home of its sandbox, or none before it has files. They decide nothing here. */
  async #ownerOf(key: SandboxKey, what: Shared, host: string): Promise<string> {
    if (what.startsWith("team.")) {
      const peer = what.slice("team.".length) as SandboxKey;
      return (await readHome(this.#redis, peer)) ?? host;
    }
    const homes = redisKeys.sharedHomes(tenantOf(key));
    await this.#redis.hsetnx(homes, what, host);
    return (await this.#redis.hget(homes, what)) ?? host;
  }
}
