import {
  Fault,
  redisKeys,
  type SecretName,
  secretLimits,
  secretName,
  type TenantId,
  tenantId,
} from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";

/** Sealing adds a nonce, a tag and base64: less than double, and 64 bytes for each. */
const sealedBytes = 2 * secretLimits.tenant.bytes + 64 * secretLimits.tenant.most;

const change = new Script({
  name: "secret-set",
  file: new URL("../../lua/secret-set.lua", import.meta.url),
  parse: (reply) => z.enum(["set", "removed", "absent", "full", "changed"]).parse(reply),
});

export interface SetSecretOptions {
  /** Refuses with `secret-refused` unless there is one of that name. */
  readonly mustExist?: boolean;
}

/** The tenants' sealed secrets. This class cannot open them. */
export class SecretStore {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async set(
    tenant: TenantId,
    name: SecretName,
    sealed: string,
    { mustExist = false }: SetSecretOptions = {},
  ): Promise<void> {
    // Before the secret: a crash in between leaves the name of a tenant that has none.
    await this.#redis.sadd(redisKeys.secretTenants, tenant);
    const answer = await this.#change(tenant, name, sealed, mustExist ? "any" : "");
    if (answer === "absent")
      throw new Fault("secret-refused", {
        tenant,
        name,
        reason: "absent",
        detail: `${tenant} has no secret ${name}`,
      });
    if (answer === "full") {
      const { most, bytes } = secretLimits.tenant;
      const detail = `${tenant} may have at most ${most} secrets of ${bytes} bytes together`;
      throw new Fault("secret-refused", { tenant, name, reason: "full", detail });
    }
  }

  /** Compare-and-swap of one sealed value. False: it was changed meanwhile. */
  async replace(
    tenant: TenantId,
    name: SecretName,
    sealed: { readonly from: string; readonly to: string },
  ): Promise<boolean> {
    return (await this.#change(tenant, name, sealed.to, sealed.from)) === "set";
  }

  /** False: there was none. */
  async remove(tenant: TenantId, name: SecretName): Promise<boolean> {
    return (await this.#change(tenant, name, "", "")) === "removed";
  }

  /** In order. */
  async names(tenant: TenantId): Promise<string[]> {
    return (await this.#redis.hkeys(redisKeys.secrets(tenant))).sort();
  }

  /** By name, sealed. */
  async all(tenant: TenantId): Promise<ReadonlyMap<SecretName, string>> {
    const found = await this.#redis.hgetall(redisKeys.secrets(tenant));
    return new Map(Object.entries(found).map(([name, sealed]) => [secretName.parse(name), sealed]));
  }

  /** Those that have or had secrets. */
  async tenants(): Promise<TenantId[]> {
    return (await this.#redis.smembers(redisKeys.secretTenants)).sort().map((id) => tenantId.parse(id));
  }

  #change(tenant: TenantId, name: SecretName, sealed: string, wanted: string) {
    const keys = [redisKeys.secrets(tenant)];
    return change.run(this.#redis, keys, [
      name,
      sealed,
      tenant,
      secretLimits.tenant.most,
      sealedBytes,
      wanted,
    ]);
  }
}
