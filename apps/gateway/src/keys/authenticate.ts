import { type ApiKey, type ApiKeys, sameSecret } from "@berth/ledger";
import type { Ceilings, TenantId } from "@berth/protocol";
import type { FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import { Problem } from "../http/problem.ts";
import type { Access } from "../http/route.ts";
import type { Principal } from "./principal.ts";
import { TokenBuckets } from "./token-bucket.ts";

export interface AuthenticateOptions {
  readonly adminKey: string | undefined;
  /** Only a loopback gateway may run without keys. */
  readonly loopbackOnly: boolean;
  readonly bodyBytes: number;
  readonly rate: number;
  /** `admin`: tenant keys may neither list nor destroy sessions. */
  readonly sessionsAccess: "own" | "admin";
  /** The ceilings of a key's tenant. */
  readonly ceilings: (tenant: TenantId) => Promise<Ceilings>;
}

/** Cache time of a key: a revoked key works for at most this long. */
const cachedMs = 2_000;
const maxCached = 10_000;
/** Advice for 401 answers. The gateway stays closed when the last key is revoked or expires. */
const whenAllAreLost = "if every key is lost, set BERTH_ADMIN_KEY and restart the gateway";

/** Identifies the caller by `Authorization: Bearer`. */
export class Authenticator {
  readonly #keys: ApiKeys;
  readonly #options: AuthenticateOptions;
  readonly #cachedKeys = new LRUCache<string, ApiKey>({ max: maxCached, ttl: cachedMs });
  readonly #ceilings = new LRUCache<TenantId, Ceilings>({ max: maxCached, ttl: cachedMs });
  readonly #rates = new TokenBuckets();
  #open: { readonly is: boolean; readonly untilMs: number } = { is: false, untilMs: 0 };

  constructor(keys: ApiKeys, options: AuthenticateOptions) {
    this.#keys = keys;
    this.#options = options;
  }

  async authenticate(request: FastifyRequest, access: Access, cost: number): Promise<Principal> {
    const { bodyBytes } = this.#options;
    if (access === "open") return { id: "anybody", role: "none", bodyBytes };
    const token = bearerOf(request);
    const principal = token === undefined ? await this.#withoutKey() : await this.#withKey(token);
    this.#spend(principal, cost);
    if (access === "admin" && principal.role !== "admin") {
      throw new Problem("forbidden", "this needs an admin key");
    }
    return principal;
  }

  /** Whether a key is still valid, for answers that last long. */
  async stillGood(principal: Principal): Promise<boolean> {
    if (principal.id === "admin") return true;
    if (principal.id === "local") return this.isOpen();
    const key = await this.#keys.get(principal.id);
    return key !== undefined && (key.expiresAtMs === undefined || key.expiresAtMs > Date.now());
  }

  /** No key is configured and none was ever made: every caller on the loopback address is the admin. */
  async isOpen(): Promise<boolean> {
    if (!this.#options.loopbackOnly || this.#options.adminKey !== undefined) return false;
    const now = performance.now();
    if (now > this.#open.untilMs) {
      this.#open = { is: !(await this.#keys.everMade()), untilMs: now + cachedMs };
    }
    return this.#open.is;
  }

  /** Clears the cache after this gateway made or revoked a key. */
  forget(): void {
    this.#open = { is: false, untilMs: 0 };
    this.#cachedKeys.clear();
  }

  /** Accepts an admin key from the board's login form, where a browser cannot send a header. */
  async admin(token: string): Promise<Principal> {
    const principal = await this.#withKey(token);
    if (principal.role !== "admin") throw new Problem("forbidden", "this needs an admin key");
    return principal;
  }

  async #withoutKey(): Promise<Principal> {
    if (await this.isOpen()) return { id: "local", role: "admin", bodyBytes: this.#options.bodyBytes };
    throw unauthorized(`send \`Authorization: Bearer <key>\`; ${whenAllAreLost}`);
  }

  async #withKey(token: string): Promise<Principal> {
    const { adminKey, bodyBytes, rate, sessionsAccess } = this.#options;
    if (adminKey !== undefined && sameSecret(token, adminKey))
      return { id: "admin", role: "admin", bodyBytes };
    const key = this.#cachedKeys.get(token) ?? (await this.#look(token));
    const limit = key.rate ?? (key.role === "tenant" ? rate : undefined);
    return {
      id: key.id,
      role: key.role,
      ...(key.tenant === undefined
        ? {}
        : {
            tenant: key.tenant,
            grants: { profiles: key.profiles ?? [], pools: key.pools ?? [] },
            ceilings: await this.#ceilingsOf(key.tenant),
            sessionsAccess,
          }),
      ...(key.agent === undefined ? {} : { agent: key.agent }),
      ...(key.settings === undefined ? {} : { settings: key.settings }),
      bodyBytes: Math.min(bodyBytes, key.bodyBytes ?? bodyBytes),
      ...(limit === undefined ? {} : { rate: limit }),
    };
  }

  async #ceilingsOf(tenant: TenantId): Promise<Ceilings> {
    const known = this.#ceilings.get(tenant);
    if (known) return known;
    const found = await this.#options.ceilings(tenant);
    this.#ceilings.set(tenant, found);
    return found;
  }

  async #look(token: string): Promise<ApiKey> {
    const key = await this.#keys.find(token);
    if (!key) throw unauthorized(`this key is not known, or no longer good; ${whenAllAreLost}`);
    this.#cachedKeys.set(token, key);
    void this.#keys.noteUse(key).catch(() => {});
    return key;
  }

  #spend({ id, rate }: Principal, cost: number): void {
    if (rate === undefined) return;
    const waitMs = this.#rates.draw(id, rate, cost);
    if (waitMs === 0) return;
    throw new Problem("too-many-requests", `this key may send ${rate} requests a second`, {
      headers: { "retry-after": String(Math.max(1, Math.ceil(waitMs / 1_000))) },
    });
  }
}

function bearerOf(request: FastifyRequest): string | undefined {
  const header = request.headers.authorization;
  if (header === undefined) return undefined;
  const [, token] = /^Bearer +([\x21-\x7e]{1,512}) *$/i.exec(header) ?? [];
  if (token === undefined) throw unauthorized("the Authorization header is `Bearer <key>`");
  return token;
}

function unauthorized(detail: string): Problem {
  return new Problem("unauthorized", detail, { headers: { "www-authenticate": 'Bearer realm="berth"' } });
}
