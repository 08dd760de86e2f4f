import { createHash, randomBytes } from "node:crypto";
import { BoardLogins } from "@berth/ledger";
import type { Redis } from "@berth/redis";

const keptSeconds = 12 * 3_600;
const cookieName = "berth_board";
/** Browsers take it only from this very host, over TLS and for all paths: no other subdomain sets or shadows it. */
const hostOnly = "__Host-";

/** Who is logged in to the dashboard. The cookie is a secret of 32 bytes; Redis knows it by its hash, so that any gateway does. */
export class BoardSessions {
  readonly #logins: BoardLogins;
  readonly #secure: boolean;
  /** The configured key by its hash: another one ends what this one began. */
  readonly #configured: string;

  constructor(
    redis: Redis,
    { secure, adminKey = "" }: { readonly secure: boolean; readonly adminKey: string | undefined },
  ) {
    this.#logins = new BoardLogins(redis);
    this.#secure = secure;
    this.#configured = `admin ${digest(`board ${adminKey}`)}`;
  }

  /** Gives the header that sets the cookie. */
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

  /** Gives the header that removes the cookie. */
  async end(header: string | undefined): Promise<string> {
    const secret = this.#secretIn(header);
    if (secret !== undefined) await this.#logins.end(digest(secret));
    return this.#cookie("", 0);
  }

  /** Strict: no other site's link, form or frame brings it along. */
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
