import { allowedNetworks } from "@berth/egress";
import { acceptanceSettings, redisUrl, unknownSettings } from "@berth/protocol";
import { secretsSettings } from "@berth/secrets";
import { listenAddress, readEnvironment, tracingOf, tracingSettings } from "@berth/service";
import { z } from "zod";

const positive = (fallback: number, most: number = Number.MAX_SAFE_INTEGER) =>
  z.coerce.number().int().positive().max(most).default(fallback);
const mebibyte = 1024 * 1024;

/** For example `10.1.0.0/16,fd00::/8`. */
const networks = z
  .string()
  .default("")
  .transform((text, context) => {
    try {
      return allowedNetworks(text);
    } catch (error) {
      context.addIssue({ code: "custom", message: (error as Error).message });
      return z.NEVER;
    }
  });

export const environment = z.object({
  REDIS_URL: redisUrl
    .default("redis://127.0.0.1:6379")
    .describe(
      "one Redis (redis://, rediss:// for TLS, unix:///path), Sentinels (redis+sentinel://) or a cluster (redis+cluster://)",
    ),
  ...acceptanceSettings,
  BERTH_ARTIFACTS: z
    .string()
    .min(1)
    .optional()
    .describe("the workers' artifact directory; without it only small artifacts can be fetched here"),
  ...secretsSettings,
  BERTH_GATEWAY_HOST: z
    .string()
    .min(1)
    .default("127.0.0.1")
    .describe("address to listen on; anything but loopback needs a key"),
  BERTH_GATEWAY_PORT: z.coerce
    .number()
    .int()
    .min(0)
    .max(65_535)
    .default(8080)
    .describe("port to listen on; 0 takes a free one and logs which"),
  BERTH_ADMIN_KEY: z
    .string()
    .min(24, { error: "an admin key has at least 24 characters; `openssl rand -hex 32` makes one" })
    .max(256)
    .regex(/^[\x21-\x7e]+$/, { error: "an admin key is printable ASCII without spaces" })
    .optional()
    .describe("an admin key that is not in Redis; needed for the first start on another address"),
  BERTH_GATEWAY_BODY_BYTES: positive(16 * mebibyte, 256 * mebibyte).describe(
    "largest request body, and largest line of a batch; a key may have a lower one",
  ),
  BERTH_GATEWAY_BODIES_BYTES: positive(256 * mebibyte).describe(
    "bytes of request bodies in memory at once; one key has at most a quarter of it",
  ),
  BERTH_GATEWAY_BODY_MS: positive(30_000).describe(
    "how long a request body may take; for a batch, between two pieces",
  ),
  BERTH_GATEWAY_HEADERS_MS: positive(10_000).describe("how long a request's headers may take"),
  BERTH_GATEWAY_CONNECTIONS: positive(10_000).describe(
    "connections open at once at this gateway; more are closed as they come",
  ),
  BERTH_GATEWAY_RATE: positive(500).describe(
    "requests a second of one tenant key, at this gateway; a key may have its own",
  ),
  BERTH_GATEWAY_WAIT_MS: positive(300_000).describe("longest that a request waits for a job's result"),
  BERTH_GATEWAY_ON_NO_SANDBOX: z
    .enum(["refuse", "wait"])
    .default("refuse")
    .describe(
      "what happens to calls of /v1/sandbox and /mcp whose sandbox no worker can start now; jobs wait in any case",
    ),
  BERTH_GATEWAY_SESSIONS: z
    .enum(["own", "admin"])
    .default("own")
    .describe(
      "own: a tenant key may list and destroy its tenant's sessions; admin: only admin keys may, and tenant keys may submit no job of kind destroy",
    ),
  BERTH_GATEWAY_STREAMS: positive(5_000).describe(
    "event streams open at once at this gateway; as many jobs are waited for",
  ),
  BERTH_GATEWAY_STREAMS_PER_KEY: positive(500).describe(
    "event streams open at once with one key; as many jobs are waited for",
  ),
  BERTH_GATEWAY_HEARTBEAT_MS: positive(15_000).describe("pause between comments on a quiet event stream"),
  BERTH_GATEWAY_DRAIN_MS: positive(15_000).describe(
    "grace period of open requests when the gateway is asked to stop",
  ),
  BERTH_GATEWAY_TRUSTED_PROXIES: networks.describe(
    "networks of the proxies in front, such as 10.1.0.0/16: the caller's address is then taken from X-Forwarded-For",
  ),
  BERTH_WEBHOOK_ALLOW: networks.describe(
    "networks that webhooks may reach although they are not public, such as 10.1.0.0/16",
  ),
  BERTH_BOARD: z.enum(["on", "read-only", "off"]).default("on").describe("Bull Board at /board, for admins"),
  BERTH_BOARD_COOKIE: z
    .enum(["plain", "secure"])
    .default("plain")
    .describe(
      "secure: the board's cookie is sent over https only; set it when a proxy speaks https for the gateway",
    ),
  BERTH_GATEWAY_METRICS: z
    .enum(["admin", "open"])
    .default("admin")
    .describe("once there is a key: admin: /metrics needs an admin key; open: it needs none"),
  BERTH_GATEWAY_METRICS_LISTEN: listenAddress
    .optional()
    .describe(
      "HOST:PORT where /metrics is open to everyone, for a network of the operator's; no port when absent",
    ),
  BERTH_METRICS_TENANTS: z.coerce
    .number()
    .int()
    .min(0)
    .max(1_000)
    .default(0)
    .describe("this many busiest tenants get a label of their own in /metrics"),
  BERTH_LOG: z.enum(["fatal", "error", "warn", "info", "debug", "silent"]).default("info"),
  ...tracingSettings,
});

export type Config = Readonly<ReturnType<typeof namedSettings>>;

/** The settings under the names that the rest of the gateway uses. */
function namedSettings(set: z.infer<typeof environment>) {
  return {
    redisUrl: set.REDIS_URL,
    accept: set.BERTH_ACCEPT,
    replicas: set.BERTH_REPLICAS,
    secretsKey: set.BERTH_SECRETS_KEY,
    secretsKeyFile: set.BERTH_SECRETS_KEY_FILE,
    artifactsDirectory: set.BERTH_ARTIFACTS,
    host: set.BERTH_GATEWAY_HOST,
    port: set.BERTH_GATEWAY_PORT,
    adminKey: set.BERTH_ADMIN_KEY,
    maxBodyBytes: set.BERTH_GATEWAY_BODY_BYTES,
    maxBodiesBytes: set.BERTH_GATEWAY_BODIES_BYTES,
    maxBodyMs: set.BERTH_GATEWAY_BODY_MS,
    maxHeadersMs: set.BERTH_GATEWAY_HEADERS_MS,
    maxConnections: set.BERTH_GATEWAY_CONNECTIONS,
    requestsPerSecond: set.BERTH_GATEWAY_RATE,
    maxWaitMs: set.BERTH_GATEWAY_WAIT_MS,
    onNoSandbox: set.BERTH_GATEWAY_ON_NO_SANDBOX,
    sessionsAccess: set.BERTH_GATEWAY_SESSIONS,
    maxStreams: set.BERTH_GATEWAY_STREAMS,
    maxStreamsPerKey: set.BERTH_GATEWAY_STREAMS_PER_KEY,
    heartbeatMs: set.BERTH_GATEWAY_HEARTBEAT_MS,
    drainMs: set.BERTH_GATEWAY_DRAIN_MS,
    trustedProxies: set.BERTH_GATEWAY_TRUSTED_PROXIES,
    webhookNetworks: set.BERTH_WEBHOOK_ALLOW,
    board: set.BERTH_BOARD,
    boardCookie: set.BERTH_BOARD_COOKIE,
    metricsAccess: set.BERTH_GATEWAY_METRICS,
    metricsListen: set.BERTH_GATEWAY_METRICS_LISTEN,
    metricsTenants: set.BERTH_METRICS_TENANTS,
    logLevel: set.BERTH_LOG,
    tracing: tracingOf(set),
  };
}

/** The configuration, or an error that lists every problem. */
export function readConfig(
  variables: NodeJS.ProcessEnv = process.env,
): { config: Config } | { problems: string[] } {
  const read = readEnvironment(environment, variables);
  return "problems" in read ? read : { config: namedSettings(read.config) };
}

/** The defaults, when no variable is set. */
export function defaultConfig(): Config {
  return namedSettings(environment.parse({}));
}

/** Warns about variables with Berth's prefix that no program of Berth reads. */
export function settingWarnings(variables: NodeJS.ProcessEnv = process.env): string[] {
  return unknownSettings(variables, Object.keys(environment.shape));
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|::1)$/;

export function isLoopback(host: string): boolean {
  return loopback.test(host);
}
