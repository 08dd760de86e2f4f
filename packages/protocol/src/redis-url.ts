import { z } from "zod";

const forms =
  "use redis://HOST:PORT/DATABASE, unix:///PATH, redis+sentinel://HOST:PORT,HOST:PORT/PRIMARY or " +
  "redis+cluster://HOST:PORT,HOST:PORT; rediss… for TLS, and USER:PASSWORD@ before the hosts";

export interface RedisHost {
  readonly host: string;
  readonly port: number;
}

interface Credentials {
  readonly username?: string;
  readonly password?: string;
}

/** The address of Redis. */
export type RedisAddress =
  /** ioredis parses `url`, and reads further options from its query. */
  | { readonly kind: "single"; readonly url: string }
  | { readonly kind: "socket"; readonly path: string }
  | {
      readonly kind: "sentinel";
      readonly hosts: readonly RedisHost[];
      readonly tls: boolean;
      /** The primary's name at the Sentinels. */
      readonly primary: string;
      readonly database: number;
      /** Credentials for Redis. */
      readonly user: Credentials;
      /** Credentials for the Sentinels. */
      readonly sentinelUser: Credentials;
    }
  | {
      readonly kind: "cluster";
      /** Some of its nodes; they report the others. */
      readonly hosts: readonly RedisHost[];
      readonly tls: boolean;
      readonly user: Credentials;
    };

/** An address of Redis as text. Its error never repeats the text, which may hold a password. */
export const redisUrl = z.string().superRefine((text, context) => {
  const parsed = parse(text);
  if (typeof parsed === "string") context.addIssue({ code: "custom", message: `${parsed}; ${forms}` });
});

/** Throws unless the text is a `redisUrl`. */
export function redisAddress(text: string): RedisAddress {
  const parsed = parse(text);
  if (typeof parsed === "string") throw new TypeError(`the address of Redis: ${parsed}`);
  return parsed;
}

/** The address, or the problem with the text. */
function parse(text: string): RedisAddress | string {
  if (/^unix:\/\/\/./.test(text)) return { kind: "socket", path: text.slice("unix://".length) };
  const [, scheme, ofMany] = /^(rediss?)(?:\+(sentinel|cluster))?:\/\//.exec(text) ?? [];
  if (scheme === undefined)
    return "it does not begin with redis://, rediss://, redis+sentinel://, redis+cluster:// or unix:///";
  return ofMany === undefined ? parseSingle(text) : parseMany(text, scheme === "rediss", ofMany);
}

function parseSingle(text: string): RedisAddress | string {
  if (/^rediss?:\/\/[^/?#]*,/.test(text))
    return "it has several hosts, as only redis+sentinel:// and redis+cluster:// have";
  if (!URL.canParse(text)) return "it is not a URL (write special characters of a password percent-encoded)";
  const { hostname, pathname } = new URL(text);
  if (hostname === "") return "it names no host";
  if (!/^\/?\d*$/.test(pathname)) return "what follows the host is not the number of a database";
  return { kind: "single", url: text };
}

/** `URL` cannot parse lists of hosts. */
function parseMany(text: string, tls: boolean, of: string): RedisAddress | string {
  const shape = /^[^:]+:\/\/(?:([^@/?#]*)@)?([^@/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/.exec(text);
  if (!shape) return "it is not a URL (write special characters of a password percent-encoded)";
  const [, login = "", list = "", path = "", query = ""] = shape;
  const user = userOf(login);
  if (typeof user === "string") return user;
  const hosts = hostsOf(list, of === "sentinel" ? 26_379 : 6_379);
  if (typeof hosts === "string") return hosts;
  const options = new URLSearchParams(query);
  const known = of === "sentinel" ? ["sentinel_username", "sentinel_password"] : [];
  const unknown = [...options.keys()].find((name) => !known.includes(name));
  if (unknown !== undefined) return `${JSON.stringify(unknown)} is not an option of redis+${of}://`;
  if (of === "cluster") {
    if (!/^\/?0?$/.test(path)) return "a cluster has no database but 0";
    return { kind: "cluster", hosts, tls, user };
  }
  const [, primary = "", database = "0", more] = path.split("/");
  if (!/^[A-Za-z0-9_.-]+$/.test(primary))
    return "it does not name the primary that the Sentinels watch, such as /mymaster";
  if (!/^\d+$/.test(database) || more !== undefined)
    return "what follows the primary's name is not the number of a database";
  const sentinelUser = credentials(options.get("sentinel_username"), options.get("sentinel_password"));
  return { kind: "sentinel", hosts, tls, primary, database: Number(database), user, sentinelUser };
}

function hostsOf(list: string, defaultPort: number): RedisHost[] | string {
  const hosts: RedisHost[] = [];
  for (const [index, one] of list.split(",").entries()) {
    const [, inBrackets, name, port = String(defaultPort)] =
      /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9_.-]+))(?::(\d+))?$/.exec(one) ?? [];
    const host = inBrackets ?? name;
    if (host === undefined)
      return one === "" ? "it names no host" : `host ${index + 1} of the list is not HOST or HOST:PORT`;
    if (Number(port) < 1 || Number(port) > 65_535)
      return `the port of host ${index + 1} of the list is not between 1 and 65535`;
    hosts.push({ host, port: Number(port) });
  }
  return hosts;
}

function userOf(login: string): Credentials | string {
  try {
    const [name = "", ...password] = login.split(":");
    return credentials(decodeURIComponent(name), decodeURIComponent(password.join(":")));
  } catch {
    return "its user name or password has a % that is not percent-encoding";
  }
}

function credentials(username: string | null, password: string | null): Credentials {
  return { ...(username ? { username } : {}), ...(password ? { password } : {}) };
}
