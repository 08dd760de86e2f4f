import { Fault, redisKeys, type SandboxKey, tenantOf } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { giveHome, type Noter, readHome } from "./lease-record.ts";

/** What sandboxes of one tenant share: its tools, one agent's directory, or a peer's files. */
export type Shared = "tools" | `agent.${string}` | `team.${string}`;
/** Anything that ties a sandbox to a host, the snapshot that its files come from included. */
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
   * Ties the sandbox to this host, if the host has everything that the sandbox shares. Throws `tied-elsewhere` if another host has it, and
   * makes that host the sandbox's home; or `home-conflict` if the sandbox's files are on a third host.
   */
  async tie(noter: Noter, shared: readonly Shared[], host: string): Promise<void> {
    for (const what of shared) {
      const owner = await this.#ownerOf(noter.key, what, host);
      if (owner !== host) await this.sendTo(noter, what, owner);
    }
  }

  /** Makes `owner`, another host, the sandbox's home. Always throws, as `tie` does. */
  async sendTo(noter: Noter, what: Tie, owner: string): Promise<never> {
    const { key } = noter;
    const home = await giveHome(this.#redis, noter, owner);
    if (home === owner) throw new Fault("tied-elsewhere", { sandboxKey: key, shared: what, host: owner });
    throw new Fault("home-conflict", { sandboxKey: key, home, shared: what, host: owner });
  }

  /** A peer's files are where its sandbox lives. A peer without files ties the sandbox to no host. */
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
