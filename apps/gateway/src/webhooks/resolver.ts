import { promises as dns } from "node:dns";
import { isIP } from "node:net";
import { type PinnedAddress, type Resolver, systemResolver } from "@berth/egress";

/** Per question and server. */
const questionMs = 2_000;
const tries = 2;

/**
 * Resolves names without `getaddrinfo`, which has only four threads: a tenant's name server that never answers would block one
 * for long. The system resolves names without a dot, which only the operator's own machines have.
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
