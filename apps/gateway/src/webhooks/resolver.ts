import { promises as dns } from "node:dns";
import { isIP } from "node:net";
import { type PinnedAddress, type Resolver, systemResolver } from "@berth/egress";

/** Of one question to one server. */
const questionMs = 2_000;
const tries = 2;

/**
 * Looks names up without the threads of `getaddrinfo`: there are four in all, and a name server of a tenant's that never answers would
 * hold one for long. Names without a dot, which only the operator's own machines answer, are the system's.
 */
export function webhookResolver(signal: AbortSignal): Resolver {
  return async (host) => {
    if (isIP(host) !== 0 || !host.includes(".") || host.endsWith(".localhost")) return systemResolver(host);
    const resolver = new dns.Resolver({ timeout: questionMs, tries });
    const cancel = () => resolver.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const [four, six] = await Promise.all([
        resolver.resolve4(host).catch(() => []),
        resolver.resolve6(host).catch(() => []),
      ]);
      return [...four.map((address) => of(address, 4)), ...six.map((address) => of(address, 6))];
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  };
}

function of(address: string, family: 4 | 6): PinnedAddress {
  return { address, family };
}
