import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { givenAgent, type ProfileLayer, redisKeys, tenantId, tighteningLayer } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { customAlphabet } from "nanoid";
import { z } from "zod";
import { checked } from "../checked.ts";
import { readTenantNames, TenantNames } from "../fleet/tenant-names.ts";
import type { FieldOf } from "../key-record.ts";
import { Grants, grantedToAll } from "../leases/grants.ts";
import type { apiKeyRecords } from "./records.ts";

const newId = customAlphabet("abcdefghijklmnopqrstuvwxyz0123456789", 12);
const tokenForm = /^berth_([a-z0-9]{12})_([A-Za-z0-9_-]{43})$/;
/** Expired keys stay listed this long, so that people see why their programs stopped working. */
const expiredKeptMs = 7 * 24 * 3_600_000;
const usedNoticeMs = 60_000;

const optionalNumber = z.coerce.number().optional();
/** Names have no commas. Keys that were made before grants have `default`, as every key has. */
const names = z
  .string()
  .transform((text) => text.split(","))
  .optional();
const stored = z.object({
  role: z.enum(["admin", "tenant"]),
  tenant: z.string().pipe(tenantId).optional(),
  agent: givenAgent.optional(),
  profiles: names,
  pools: names,
  settings: z
    .string()
    .transform((text): unknown => JSON.parse(text))
    .pipe(tighteningLayer)
    .optional(),
  name: z.string(),
  sha256: z.string(),
  createdAtMs: z.coerce.number(),
  expiresAtMs: optionalNumber,
  rate: optionalNumber,
  bodyBytes: optionalNumber,
  usedAtMs: optionalNumber,
} satisfies Record<FieldOf<typeof apiKeyRecords.apiKey>, z.ZodType>);

const used = new Script({
  name: "key-used",
  file: new URL("../../lua/key-used.lua", import.meta.url),
  parse: (reply) => z.union([z.literal(0), z.literal(1)]).parse(reply),
});

/** `profiles`, `pools`: what a tenant key may use; of an admin key undefined, for all. */
export type ApiKey = Omit<z.infer<typeof stored>, "sha256"> & {
  readonly id: string;
  /** The tenant's name as it was given, where its id is another text. */
  readonly tenantName?: string;
};

export interface NewKey {
  readonly role: "admin" | "tenant";
  /** By its name or its id. */
  readonly tenant?: string | undefined;
  /** Of a tenant key, besides `default`; each must be granted to the tenant. */
  readonly profiles?: readonly string[] | undefined;
  readonly pools?: readonly string[] | undefined;
  /** Of a tenant key, by its name or its id: every job that it submits is this agent's. */
  readonly agent?: string | undefined;
  /** Of a tenant key: every job that it submits has no more than this. */
  readonly settings?: ProfileLayer | undefined;
  readonly name: string;
  readonly expiresAtMs?: number | undefined;
  readonly rate?: number | undefined;
  readonly bodyBytes?: number | undefined;
}

/**
 * Keys that open the gateway. A token is `berth_<id>_<secret>`: 32 random bytes, of which Redis has only the SHA-256. That is
 * enough for a secret that cannot be guessed; a slow hash would only make every request slow.
 */
export class ApiKeys {
  readonly #redis: Redis;
  readonly #grants: Grants;
  readonly #names: TenantNames;

  /** @internal Users of the client get it from a `Berth`. */
  constructor(redis: Redis) {
    this.#redis = redis;
    this.#grants = new Grants(redis);
    this.#names = new TenantNames(redis);
  }

  /** Only this call returns the token. Throws `not-granted` if the key would get more than its tenant has. */
  async create({
    profiles,
    pools,
    tenant: given,
    ...wanted
  }: NewKey): Promise<{ readonly token: string; readonly key: ApiKey }> {
    const tenant = given === undefined ? undefined : checked(tenantId, given, "the tenant");
    for (const profile of profiles ?? []) if (tenant) await this.#grants.check(tenant, { profile });
    for (const pool of pools ?? []) if (tenant) await this.#grants.check(tenant, { pool });
    if (wanted.agent !== undefined) checked(givenAgent, wanted.agent, "the agent");
    const tenantName = tenant && (await this.#names.admit(tenant, given));
    const key = tenant
      ? { ...wanted, tenant, profiles: withDefault(profiles), pools: withDefault(pools) }
      : wanted;
    const id = newId();
    const secret = randomBytes(32).toString("base64url");
    const createdAtMs = Date.now();
    const fields = Object.entries({ ...key, createdAtMs, sha256: digest(secret).toString("hex") })
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, name === "settings" ? JSON.stringify(value) : String(value)]);
    const change = this.#redis.multi().hset(redisKeys.apiKey(id), Object.fromEntries(fields));
    change.set(redisKeys.apiKeysMade, createdAtMs, "NX");
    if (key.expiresAtMs !== undefined) {
      change.pexpireat(redisKeys.apiKey(id), key.expiresAtMs + expiredKeptMs);
    }
    await change.zadd(redisKeys.apiKeys, createdAtMs, id).exec();
    return { token: `berth_${id}_${secret}`, key: named({ id, createdAtMs, ...key }, tenantName) };
  }

  /** The key of a token, if its secret is right and it has not expired; with what both it and its tenant may use. */
  async find(token: string): Promise<ApiKey | undefined> {
    const [, id, secret] = tokenForm.exec(token) ?? [];
    if (id === undefined || secret === undefined) return undefined;
    const found = await this.#read(id);
    if (!found || !timingSafeEqual(digest(secret), Buffer.from(found.sha256, "hex"))) return undefined;
    if (found.key.expiresAtMs !== undefined && found.key.expiresAtMs <= Date.now()) return undefined;
    const { key } = found;
    if (key.tenant === undefined) return key;
    const granted = await this.#grants.of(key.tenant);
    return {
      ...key,
      profiles: key.profiles?.filter((name) => granted.profiles.includes(name)),
      pools: key.pools?.filter((name) => granted.pools.includes(name)),
    };
  }

  async get(id: string): Promise<ApiKey | undefined> {
    return (await this.#read(id))?.key;
  }

  async list(): Promise<ApiKey[]> {
    const keys: ApiKey[] = [];
    for (const id of await this.#redis.zrange(redisKeys.apiKeys, "0", "-1")) {
      const found = await this.#read(id);
      if (found) keys.push(found.key);
      else await this.#remove(id);
    }
    const names = await readTenantNames(
      this.#redis,
      keys.flatMap(({ tenant }) => tenant ?? []),
    );
    return keys.map((key) => named(key, names.get(key.tenant ?? "")));
  }

  async revoke(id: string): Promise<boolean> {
    await this.#remove(id);
    return (await this.#redis.del(redisKeys.apiKey(id))) === 1;
  }

  /** A configured key counts as one that was made. */
  async noteMade(): Promise<void> {
    await this.#redis.set(redisKeys.apiKeysMade, Date.now(), "NX");
  }

  /** Whether there is or ever was a key. */
  async everMade(): Promise<boolean> {
    return (await this.#redis.exists(redisKeys.apiKeysMade, redisKeys.apiKeys)) > 0;
  }

  count(): Promise<number> {
    return this.#redis.zcard(redisKeys.apiKeys);
  }

  /** Once a minute at most: for operators who look for unused keys. */
  async noteUse(key: ApiKey): Promise<void> {
    const now = Date.now();
    if (now - (key.usedAtMs ?? 0) < usedNoticeMs) return;
    await used.run(this.#redis, [redisKeys.apiKey(key.id)], [now]);
  }

  /** Also notes that there was a key: older versions made keys without that note. */
  async #remove(id: string): Promise<void> {
    const change = this.#redis.multi().set(redisKeys.apiKeysMade, Date.now(), "NX");
    await change.zrem(redisKeys.apiKeys, id).exec();
  }

  async #read(id: string): Promise<{ key: ApiKey; sha256: string } | undefined> {
    const parsed = stored.safeParse(await this.#redis.hgetall(redisKeys.apiKey(id)));
    if (!parsed.success) return undefined;
    const { sha256, ...key } = parsed.data;
    if (key.tenant === undefined) return { key: { id, ...key }, sha256 };
    const { profiles, pools } = key;
    return { key: { id, ...key, profiles: withDefault(profiles), pools: withDefault(pools) }, sha256 };
  }
}

function named(key: ApiKey, tenantName: string | undefined): ApiKey {
  return tenantName === undefined ? key : { ...key, tenantName };
}

/** Every tenant key may use `default`. */
function withDefault(names: readonly string[] = []): string[] {
  return [...new Set([grantedToAll, ...names])];
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** Compares two secrets in constant time. */
export function sameSecret(given: string, wanted: string): boolean {
  return timingSafeEqual(digest(given), digest(wanted));
}
