import { z } from "zod";

/**
 * Hosts that a sandbox may reach: `HOST` for ports 80 and 443, or `HOST:PORT`. HOST is a name, `*.` and a name for all its subdomains, `*`
 * for every name, or an address, which always needs a port. Only an address rule allows a non-public address.
 */
export interface EgressRule {
  /** Lower case; an IPv6 address without brackets. */
  readonly host: string;
  readonly kind: "name" | "below" | "any" | "address";
  readonly ports: readonly number[];
}

const usualPorts = [80, 443] as const;
const label = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const name = new RegExp(`^(?=.{1,253}$)${label}(?:\\.${label})*$`);
/** Programs parse a host that ends in a number as an IPv4 address: `2130706433`, `0x7f.1`. */
const endsInNumber = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/;
const ipv4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$/;
const ipv6 = z.ipv6();

export type EgressHost =
  | { readonly kind: "name" | "address"; readonly host: string }
  | { readonly kind: "bad"; readonly problem: string };

/** A host from a URL or from CONNECT, in the canonical form used for comparing and connecting. */
export function egressHost(text: string): EgressHost {
  const lower = text.toLowerCase();
  if (lower.startsWith("[")) {
    const inner = lower.endsWith("]") ? lower.slice(1, -1) : "";
    if (!ipv6.safeParse(inner).success)
      return { kind: "bad", problem: "it is no IPv6 address; one has no zone and no prefix" };
    // One form for each address.
    return { kind: "address", host: canonicalIpv6(inner) };
  }
  const host = lower.endsWith(".") ? lower.slice(0, -1) : lower;
  if (ipv4.test(host)) return { kind: "address", host };
  if (endsInNumber.test(host))
    return { kind: "bad", problem: "it is another spelling of an address; write four decimal numbers" };
  if (!name.test(host))
    return { kind: "bad", problem: "it is no host name; write one of another alphabet as xn--…" };
  return { kind: "name", host };
}

function canonicalIpv6(address: string): string {
  return new URL(`http://[${address}]/`).hostname.slice(1, -1);
}

/** Undefined: not a rule. */
export function readEgressRule(text: string): EgressRule | undefined {
  const [, host = "", port] = /^(\[[^\]]*\]|[^:]+)(?::([1-9]\d{0,4}))?$/.exec(text.toLowerCase()) ?? [];
  if (host === "" || Number(port ?? 1) > 65_535) return undefined;
  const ports = port === undefined ? usualPorts : [Number(port)];
  if (host === "*") return { host, kind: "any", ports };
  const bare = host.startsWith("*.") ? host.slice(2) : host;
  const found = egressHost(bare);
  if (found.kind === "bad") return undefined;
  if (found.kind === "address") {
    return bare !== host || port === undefined ? undefined : { host: found.host, kind: "address", ports };
  }
  return { host: found.host, kind: bare === host ? "name" : "below", ports };
}

/** Whether the rule allows the host, on any port. */
export function coversHost(rule: EgressRule, host: EgressHost): boolean {
  if (host.kind === "bad") return false;
  switch (rule.kind) {
    case "any":
      return host.kind === "name";
    case "below":
      return host.kind === "name" && host.host.endsWith(`.${rule.host}`);
    default:
      return host.kind === rule.kind && host.host === rule.host;
  }
}

/** Whether one rule covers everything that another allows, port by port. */
function coversRule(above: EgressRule, below: EgressRule, port: number): boolean {
  if (!above.ports.includes(port)) return false;
  if (below.kind === "any") return above.kind === "any";
  if (below.kind !== "below") return coversHost(above, { kind: below.kind, host: below.host });
  return above.kind === "any" || (above.kind === "below" && `.${below.host}`.endsWith(`.${above.host}`));
}

/** The rules of a lower layer that the layers above do not cover. */
export function uncoveredRules(above: readonly string[], below: readonly string[]): string[] {
  const held = above.flatMap((text) => readEgressRule(text) ?? []);
  return below.filter((text) => {
    const rule = readEgressRule(text);
    return rule?.ports.every((port) => held.some((one) => coversRule(one, rule, port))) !== true;
  });
}

export const egressRule = z
  .string()
  .max(300)
  .refine((text) => readEgressRule(text) !== undefined, {
    error: "a rule is NAME, *.NAME or *, with ports 80 and 443, or with :PORT; or ADDRESS:PORT",
  });
