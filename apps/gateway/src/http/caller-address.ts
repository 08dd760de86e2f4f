import { type BlockList, isIP } from "node:net";
import type { FastifyRequest } from "fastify";

/** More hops than that name nothing that is worth following. */
const mostHops = 10;

/**
 * From where a request came: of its connection, or, behind proxies that the operator trusts, what the outermost of them saw. A caller
 * writes into X-Forwarded-For what it likes, and each proxy adds to its end: what stands before an address that is not trusted counts
 * for nothing.
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

/** Of a socket that listens on both families. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}
