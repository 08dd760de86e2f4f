import { createHash, randomBytes } from "node:crypto";
import { BoardLogins } from "@berth/ledger";
import type { Redis } from "@berth/redis";

const keptSeconds = 12 * 3_600;
const cookieName = "berth_board";
/** Browsers accept such a cookie only from this host, over TLS and for all paths, so no other subdomain can set or shadow it. */
const hostOnly = "__Host-";

/** Logins of the dashboard. The cookie is a secret of 32 bytes. Redis has its hash, so a login holds at every gateway. */
export class BoardSessions {
  readonly #logins: BoardLogins;
  readonly #secure: boolean;
  /** Names the configured admin key by its hash, so that replacing the key ends its logins. */
  readonly #configured: string;

  constructor(
    redis: Redis,
    { secure, adminKey = "" }: { readonly secure: boolean; readonly adminKey: string | undefined },
  ) {
    this.#logins = new BoardLogins(redis);
    this.#secure = secure;
    this.#configured = `admin ${digest(`board ${adminKey}`)}`;
  }

  /** Returns the header that sets the cookie. */
  async begin(keyId: string): Promise<string> {
    const secret = randomBytes(32).toString("base64url");
    const of = keyId === "admin" ? this.#configured : keyId;
    await this.#logins.begin(digest(secret), of, keptSeconds);
    return this.#cookie(secret, keptSeconds);
  }

  /** The id of the key that was logged in with. */
  async actor(header: string | undefined): Promise<string | undefined> {
    const secret = this.#secretIn(header);
    if (secret === undefined) return undefined;
    const of = await this.#logins.who(digest(secret));
    if (of === this.#configured) return "admin";
    return of?.startsWith("admin ") || of === "admin" ? undefined : of;
  }

  /** Returns the header that removes the cookie. */
  async end(header: string | undefined): Promise<string> {
    const secret = this.#secretIn(header);
    if (secret !== undefined) await this.#logins.end(digest(secret));
    return this.#cookie("", 0);
  }

  /** SameSite=Strict: a browser does not send it with links, forms or frames of other sites. */
  #cookie(value: string, maxAge: number): string {
    const place = this.#secure ? "Path=/; Secure" : "Path=/board";
    return `${this.#name}=${value}; ${place}; Max-Age=${maxAge}; HttpOnly; SameSite=Strict`;
  }

  get #name(): string {
    return this.#secure ? `${hostOnly}${cookieName}` : cookieName;
  }

  #secretIn(header = ""): string | undefined {
    const pairs = header.split(/; */).filter((pair) => pair.startsWith(`${this.#name}=`));
    return pairs
      .map((pair) => /=([A-Za-z0-9_-]{43})$/.exec(pair)?.[1])
      .find((secret) => secret !== undefined);
  }
}

function digest(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}
