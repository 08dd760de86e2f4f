import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { RedisServer } from "./redis-server.ts";

export type TestTopology = "single" | "sentinel" | "cluster";

/** The processes of one Redis, started in this order, and how to tell that they work together. */
export interface RedisParts {
  readonly url: string;
  /** Those that keep data. */
  readonly servers: readonly RedisServer[];
  readonly sentinels: readonly RedisServer[];
  /** Before the first start. */
  readonly prepare: () => Promise<void>;
  readonly settled: () => Promise<void>;
}

/** With everything on disk that a fleet would have. */
const durable = ["--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction"];
/** A replica has what its primary has at once. */
const eager = [
  "--protected-mode",
  "no",
  "--repl-diskless-sync",
  "yes",
  "--repl-diskless-sync-delay",
  "0",
  "--repl-ping-replica-period",
  "1",
];
const primaryPort = 7_000;
const sentinelPort = 26_379;
/** How long a primary is silent before it counts as dead. */
const deadAfterMs = 3_000;
const primaries = 3;
const slots = 16_384;

/** TLS and a user with a password; the default user's is another one. */
export interface Secured {
  readonly user: string;
  readonly password: string;
  /** Of the authority, and of what it certified for an address. */
  readonly certificates: (address: string) => {
    readonly ca: string;
    readonly cert: string;
    readonly key: string;
  };
}

interface Place {
  readonly directory: string;
  /** Ports are the same for all tests; the address is one test's own. */
  readonly address: string;
  readonly secured: Secured | undefined;
}

export function partsOf(topology: TestTopology, directory: string, secured?: Secured): RedisParts {
  if (topology === "single") return single(directory);
  const address = ["127", ...randomBytes(3)].map(Number).join(".");
  const place = { directory, address, secured };
  return topology === "cluster" ? cluster(place) : sentinel(place);
}

function single(directory: string): RedisParts {
  const path = join(directory, "redis.sock");
  const url = `unix://${path}`;
  const args = ["--port", "0", "--unixsocket", path, "--dir", directory, ...durable];
  return { ...alone, url, servers: [new RedisServer({ directory, url, args })] };
}

const alone = { sentinels: [], prepare: async () => {}, settled: async () => {} };

/** Three primaries, then a replica of each. They know each other from the start, by their files. */
function cluster(place: Place): RedisParts {
  const { address } = place;
  const ids = Array.from({ length: 2 * primaries }, () => randomBytes(20).toString("hex"));
  const servers = ids.map((_, index) => {
    const args = ["--cluster-enabled", "yes", "--cluster-node-timeout", String(deadAfterMs)];
    args.push("--cluster-announce-ip", address);
    const others = ["--cluster-require-full-coverage", "no", "--cluster-replica-validity-factor", "0"];
    return tcpServer(place, primaryPort + index, [...args, ...others]);
  });
  const line = (of: number, index: number) => {
    const port = primaryPort + index;
    const me = of === index ? "myself," : "";
    const share = Math.ceil(slots / primaries);
    const own = `${index * share}-${Math.min((index + 1) * share, slots) - 1}`;
    const role =
      index < primaries
        ? `${me}master - 0 0 ${index + 1} connected ${own}`
        : `${me}slave ${ids[index - primaries]} 0 0 ${index - primaries + 1} connected`;
    return `${ids[index]} ${address}:${port}@${port + 10_000} ${role}`;
  };
  return {
    url: urlOf("+cluster", place, `${address}:${primaryPort},${address}:${primaryPort + 1}`),
    servers,
    sentinels: [],
    prepare: async () => {
      for (const [of, server] of servers.entries()) {
        const lines = ids.map((_, index) => line(of, index));
        await mkdir(server.directory, { recursive: true });
        const file = [...lines, `vars currentEpoch ${primaries} lastVoteEpoch 0`, ""].join("\n");
        await writeFile(join(server.directory, "nodes.conf"), file);
      }
    },
    settled: async () => {
      for (const server of servers.filter(({ alive }) => alive)) await works(server);
    },
  };
}

/** Whether its cluster has all slots, and a replica its primary. */
async function works(server: RedisServer): Promise<void> {
  await server.ask(async (redis) => {
    await expect.poll(() => redis.cluster("INFO")).toContain("cluster_state:ok");
    await expect.poll(() => redis.info("replication")).toMatch(/role:master|master_link_status:up/);
  });
}

/** A primary, its replica, and three Sentinels that know each other from the start. */
function sentinel(place: Place): RedisParts {
  const { directory, address, secured } = place;
  const servers = [0, 1].map((index) => {
    const of = index === 0 ? [] : ["--replicaof", `${address} ${primaryPort}`];
    return tcpServer(place, primaryPort + index, ["--replica-announce-ip", address, ...of]);
  });
  const ids = Array.from({ length: 3 }, () => randomBytes(20).toString("hex"));
  const sentinels = ids.map((_, index) => {
    const own = join(directory, `sentinel-${index}`);
    const url = urlOf("", place, `${address}:${sentinelPort + index}`);
    return new RedisServer({ directory: own, url, args: [join(own, "sentinel.conf"), "--sentinel"] });
  });
  const hosts = sentinels.map((_, index) => `${address}:${sentinelPort + index}`);
  const logins = secured
    ? `?sentinel_username=${secured.user}&sentinel_password=${encodeURIComponent(secured.password)}`
    : "";
  return {
    url: urlOf("+sentinel", place, `${hosts.join(",")}/main${logins}`),
    servers,
    sentinels,
    prepare: async () => {
      for (const [index, one] of sentinels.entries()) {
        const others = ids.flatMap((id, other) =>
          other === index ? [] : [`sentinel known-sentinel main ${address} ${sentinelPort + other} ${id}`],
        );
        const lines = [
          ...(secured ? ["port 0", `tls-port ${sentinelPort + index}`] : [`port ${sentinelPort + index}`]),
          ...securedLines(place),
          `bind ${address}`,
          `bind-source-addr ${address}`,
          `sentinel announce-ip ${address}`,
          `sentinel monitor main ${address} ${primaryPort} 2`,
          ...(secured
            ? [
                `sentinel auth-user main ${secured.user}`,
                `sentinel auth-pass main ${secured.password}`,
                `sentinel sentinel-user ${secured.user}`,
                `sentinel sentinel-pass ${secured.password}`,
              ]
            : []),
          `sentinel down-after-milliseconds main ${deadAfterMs}`,
          "sentinel failover-timeout main 3000",
          `sentinel known-replica main ${address} ${primaryPort + 1}`,
          `sentinel myid ${ids[index]}`,
          ...others,
        ];
        await mkdir(one.directory, { recursive: true });
        await writeFile(join(one.directory, "sentinel.conf"), `${lines.join("\n")}\n`);
      }
    },
    settled: async () => {
      for (const server of servers.filter(({ alive }) => alive))
        await server.ask((redis) =>
          expect
            .poll(() => redis.info("replication"), { timeout: 60_000 })
            .toMatch(/role:master|master_link_status:up/),
        );
      for (const one of sentinels)
        await one.ask((redis) =>
          expect
            .poll(() => redis.call("SENTINEL", "CKQUORUM", "main").catch(String), { timeout: 60_000 })
            .toMatch(/^OK/),
        );
    },
  };
}

function tcpServer(place: Place, port: number, args: readonly string[]): RedisServer {
  const { directory, address, secured } = place;
  const own = join(directory, String(port));
  const ports = secured ? ["--port", "0", "--tls-port", String(port)] : ["--port", String(port)];
  const listening = [...ports, "--bind", address, "--bind-source-addr", address, "--dir", own];
  const security = securedLines(place).flatMap((line) => {
    const [name, ...values] = line.split(" ");
    return [`--${name}`, ...values];
  });
  return new RedisServer({
    directory: own,
    url: urlOf("", place, `${address}:${port}`),
    args: [...listening, ...durable, ...eager, ...security, ...args],
  });
}

/** Lines of a configuration file. */
function securedLines({ address, secured }: Place): string[] {
  if (!secured) return [];
  const { user, password, certificates } = secured;
  const { ca, cert, key } = certificates(address);
  return [
    `user ${user} on >${password} ~* &* +@all`,
    "user default off",
    `masteruser ${user}`,
    `masterauth ${password}`,
    `tls-ca-cert-file ${ca}`,
    `tls-cert-file ${cert}`,
    `tls-key-file ${key}`,
    "tls-auth-clients no",
    "tls-replication yes",
    "tls-cluster yes",
  ];
}

function urlOf(scheme: string, { secured }: Place, rest: string): string {
  if (!secured) return `redis${scheme}://${rest}`;
  return `rediss${scheme}://${secured.user}:${encodeURIComponent(secured.password)}@${rest}`;
}
