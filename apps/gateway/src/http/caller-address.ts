import { type BlockList, isIP } from "node:net";
import type { FastifyRequest } from "fastify";

/** Longest X-Forwarded-For chain that is read. */
const mostHops = 10;

/**
 * The caller's address: the connection's, or, behind proxies that the operator trusts, the one that the outermost trusted proxy
 * saw. A caller can put anything into X-Forwarded-For and each proxy appends to it, so entries before the last untrusted address
 * are ignored.
 */
export function callerAddress({ ip, headers }: FastifyRequest, trusted: BlockList): string {
  const forwarded = [headers["x-forwarded-for"] ?? []].flat().join(",").split(",");
  let address = plain(ip);
  for (const hop of forwarded.reverse().slice(0, mostHops)) {
    const before = plain(hop.trim());
    if (!isTrusted(address, trusted) || isIP(before) === 0) break;
    address = before;
  }
  return address;
}

function isTrusted(address: string, trusted: BlockList): boolean {
  return trusted.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

/** A dual-stack socket reports IPv4 addresses as IPv6. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}
