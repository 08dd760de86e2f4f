import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";

/** Address ranges outside the public internet: local, private, cloud metadata, and ranges that embed other addresses. */
const notPublic: readonly (readonly [network: string, prefix: number, family: "ipv4" | "ipv6"])[] = [
  ["0.0.0.0", 8, "ipv4"],
  ["10.0.0.0", 8, "ipv4"],
  ["100.64.0.0", 10, "ipv4"],
  ["127.0.0.0", 8, "ipv4"],
  // The metadata address of one cloud.
  ["168.63.129.16", 32, "ipv4"],
  ["169.254.0.0", 16, "ipv4"],
  ["172.16.0.0", 12, "ipv4"],
  ["192.0.0.0", 24, "ipv4"],
  ["192.0.2.0", 24, "ipv4"],
  ["192.88.99.0", 24, "ipv4"],
  ["192.168.0.0", 16, "ipv4"],
  ["198.18.0.0", 15, "ipv4"],
  ["198.51.100.0", 24, "ipv4"],
  ["203.0.113.0", 24, "ipv4"],
  ["224.0.0.0", 3, "ipv4"],
  ["::", 8, "ipv6"],
  ["64:ff9b::", 16, "ipv6"],
  ["100::", 16, "ipv6"],
  ["2001::", 23, "ipv6"],
  ["2001:db8::", 32, "ipv6"],
  ["2002::", 16, "ipv6"],
  ["3fff::", 20, "ipv6"],
  ["5f00::", 16, "ipv6"],
  ["fc00::", 7, "ipv6"],
  ["fe80::", 9, "ipv6"],
  ["ff00::", 8, "ipv6"],
];

/** One list per family: a list with `::/8` would match every IPv4 address, as IPv4-mapped. */
const refused = { ipv4: new BlockList(), ipv6: new BlockList() } as const;
for (const [network, prefix, family] of notPublic) refused[family].addSubnet(network, prefix, family);

/** Parses networks that an operator allows although they are not public, such as `10.1.0.0/16,fd00::/8`. Throws if invalid. */
export function allowedNetworks(text: string): BlockList {
  const list = new BlockList();
  for (const part of text
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "")) {
    const [network = "", prefix = ""] = part.split("/");
    const family = isIP(network);
    if (family === 0 || !/^\d{1,3}$/.test(prefix))
      throw new TypeError(`${part} is not a network such as 10.0.0.0/8`);
    list.addSubnet(network, Number(prefix), family === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

/** Whether an address is public, in any notation. Text that is no address is not. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  // A zone names an interface of this machine.
  if (family === 0 || address.includes("%")) return false;
  const kind = family === 6 ? "ipv6" : "ipv4";
  return !refused[kind].check(address, kind);
}

/** Whether the address is one of this machine's own, in any network: the machine's services may listen there. */
export type IsOwn = (address: string) => boolean;

export const isOwnAddress: IsOwn = (address) => {
  const wanted = spelled(address);
  const all = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  return all.some((one) => spelled(one.address) === wanted);
};

/** One spelling for each IPv6 address. */
function spelled(address: string): string {
  const bare = address.split("%", 1)[0] ?? "";
  return isIP(bare) === 6 ? new URL(`http://[${bare}]/`).hostname : bare;
}

export interface PinnedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** All addresses of a name. Rejects, or returns none, if there is none. */
export type Resolver = (host: string) => Promise<readonly PinnedAddress[]>;

export const systemResolver: Resolver = async (host) =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address, family }) => ({
    address,
    family: family === 6 ? 6 : 4,
  }));

/** Why the name was refused. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

/**
 * Resolves a name once and returns the addresses to connect to. Refuses the name unless every address is allowed: otherwise a name could
 * answer with a public address first and a private one next (DNS rebinding).
 */
export async function pinnedAddresses(
  host: string,
  isAllowed: (address: PinnedAddress) => boolean,
  resolve: Resolver = systemResolver,
  isOwn: IsOwn = isOwnAddress,
): Promise<readonly [PinnedAddress, ...PinnedAddress[]]> {
  const bare = host.replace(/^\[|\]$/g, "");
  const found = await resolve(bare).catch(() => []);
  const [first, ...rest] = found;
  if (!first) throw new AddressRefused(`${bare} has no address`);
  for (const one of found) {
    if (isAllowed(one)) continue;
    if (!isPublicAddress(one.address))
      throw new AddressRefused(`${bare} is at ${one.address}, which is not a public address`);
    if (isOwn(one.address))
      throw new AddressRefused(
        `${bare} is at ${one.address}, which is not a public address but this host's own`,
      );
  }
  return [first, ...rest];
}

/** The first allowed address, where networks are allowed in addition to public ones. */
export async function pinnedAddress(
  host: string,
  allowed: BlockList,
  resolve?: Resolver,
): Promise<PinnedAddress> {
  const inNetwork = ({ address, family }: PinnedAddress) =>
    allowed.check(address, family === 6 ? "ipv6" : "ipv4");
  return (await pinnedAddresses(host, inNetwork, resolve))[0];
}
