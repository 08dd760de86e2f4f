import { type EgressHost, egressHost } from "@berth/protocol";

export interface Target {
  readonly host: Exclude<EgressHost, { kind: "bad" }>;
  readonly port: number;
}

/** A request that the proxy cannot parse, or refuses. */
export class BadTarget extends Error {
  override readonly name = "BadTarget";
}

/** Parses `HOST:PORT` of a CONNECT, or `HOST` where the scheme implies the port. */
export function readAuthority(text: string, schemePort?: number): Target {
  if (text.includes("@")) throw new BadTarget("a target carries no user or password");
  const [, name = "", digits] = /^(\[[^\]]*\]|[^:[\]]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const port = digits === undefined ? schemePort : Number(digits);
  if (port === undefined || port < 1 || port > 65_535)
    throw new BadTarget("the target is not HOST:PORT with a port of 1 to 65535");
  const host = egressHost(name);
  if (host.kind === "bad") throw new BadTarget(`the target's host is refused: ${host.problem}`);
  return { host, port };
}

/** Parses `http://HOST[:PORT]/…` in a proxy request. */
export function readAbsolute(url: string): { readonly target: Target; readonly path: string } {
  const [, authority = "", path = ""] = /^http:\/\/([^/?#]*)([/?][\x21-\x7e]*)?$/i.exec(url) ?? [];
  if (authority === "") throw new BadTarget("write http://HOST/… for plain HTTP, or CONNECT HOST:PORT");
  return { target: readAuthority(authority, 80), path: path.startsWith("/") ? path : `/${path}` };
}

/** As in a URL: an IPv6 address in brackets. */
export function shownTarget({ host, port }: Target): string {
  return `${host.host.includes(":") ? `[${host.host}]` : host.host}:${port}`;
}
