import { hostname } from "node:os";
import { isAbsolute, resolve } from "node:path";
import { usageDaysKept } from "@berth/ledger";
import {
  acceptanceSettings,
  defaultScope,
  fleetId,
  hostName,
  mostUsageDays,
  type ProfileLayer,
  poolName,
  quotaBackends,
  redisUrl,
  type SandboxProfile,
  sandboxProfile,
  unknownSettings,
  workerId,
} from "@berth/protocol";
import { secretsSettings } from "@berth/secrets";
import { listenAddress, readEnvironment, tracingOf, tracingSettings } from "@berth/service";
import { z } from "zod";
import { readConfigFile } from "./config-file.ts";
import { profileVariables } from "./profile-variables.ts";

const dayMs = 24 * 3_600_000;
const count = (fallback: number) => z.coerce.number().int().positive().default(fallback);
const countOrNone = (fallback: number) => z.coerce.number().int().min(0).default(fallback);
const directory = (fallback: string) =>
  z
    .string()
    .default(fallback)
    .transform((path) => (isAbsolute(path) ? path : resolve(path)));

/** Every variable, with what it means. The table in docs/configuration.md is made from this. */
export const environment = z.object({
  REDIS_URL: redisUrl
    .default("redis://127.0.0.1:6379")
    .describe(
      "one Redis (redis://, rediss:// for TLS, unix:///path), Sentinels (redis+sentinel://) or a cluster (redis+cluster://)",
    ),
  ...acceptanceSettings,
  DOCKER_HOST: z.string().min(1).optional().describe("the container engine; its default socket when absent"),
  BERTH_CONFIG: z
    .string()
    .optional()
    .describe(
      "a YAML or JSON file with any of these, and `profiles` by name; a variable that is set wins over it",
    ),
  BERTH_FLEET: z.string().pipe(fleetId).prefault("default").describe("labels every container"),
  BERTH_WORKER_ID: z
    .string()
    .pipe(workerId)
    .prefault(defaultName)
    .describe("stable across restarts; the host's name when absent"),
  BERTH_HOST: z
    .string()
    .pipe(hostName)
    .prefault(defaultName)
    .describe("whose disk has the workspaces; the host's name when absent"),
  BERTH_STORAGE: z
    .enum(["local", "shared"])
    .default("local")
    .describe(
      "local: a sandbox stays on the host that has its workspace; shared: every worker sees them all",
    ),
  BERTH_POOLS: z
    .string()
    .default("default")
    .transform((text) => text.split(",").map((one) => one.trim()))
    .pipe(z.array(poolName).min(1))
    .describe("pools this worker takes sandboxes of, separated by commas"),
  ...profileVariables,
  BERTH_SCOPE: defaultScope
    .optional()
    .describe(
      "tenant, session or agent: which jobs that name no scope share a sandbox, unless a live layer says it; the whole fleet's, so give all workers the same",
    ),
  BERTH_WORKSPACES: directory(".berth/workspaces").describe(
    "directory of the workspaces; the same path for the engine",
  ),
  BERTH_DISK_FLOOR_BYTES: countOrNone(1024 ** 3).describe(
    "free space of the workspaces' disk below which no file of any sandbox may grow; 0: none",
  ),
  BERTH_QUOTA_BACKEND: z
    .enum(quotaBackends)
    .default("auto")
    .describe(
      "what bounds workspaces. project: project quotas of ext4 or xfs; btrfs: its quota groups; image: a file system of its own for each new workspace, in a file; walk: counting its files periodically; auto: what the disk has, else walk",
    ),
  BERTH_MOUNTS: z
    .string()
    .default("")
    .transform((text) =>
      text
        .split(",")
        .map((one) => one.trim())
        .filter((one) => one !== ""),
    )
    .pipe(z.array(z.string().refine(isAbsolute, { error: "each directory begins with /" })))
    .describe("directories of the host, separated by commas: profiles may mount only what is beneath them"),
  BERTH_INIT: z
    .string()
    .refine(isAbsolute, { error: "a path that begins with /, as the engine's host knows it" })
    .optional()
    .describe("init, under the same path for the engine; the one that came with the worker when absent"),
  BERTH_ARTIFACTS: directory(".berth/artifacts").describe("directory of artifacts too large for Redis"),
  BERTH_ARTIFACT_QUOTA_BYTES: count(1024 ** 3).describe("artifacts that one tenant may keep"),
  BERTH_ARTIFACT_DAYS: count(7).describe("how long an artifact is kept"),
  BERTH_USAGE_DAYS: count(usageDaysKept)
    .pipe(z.number().max(mostUsageDays))
    .describe("days for which the daily usage of each tenant's jobs is kept; at most 400"),
  ...secretsSettings,
  BERTH_MAX_SANDBOXES: count(8).describe("sandboxes held at once"),
  BERTH_MAX_RUNNING: count(64).describe("jobs of all its sandboxes that run at once"),
  BERTH_LEASE_MS: count(5_000).describe("a dead worker's sandboxes move after this long"),
  BERTH_QUANTUM_MS: count(10_000).describe("under pressure a busy sandbox yields its slot after this long"),
  BERTH_SWEEP_MS: count(2_000).describe("how often forgotten sandboxes are offered again"),
  BERTH_FORGET_MS: count(86_400_000).describe(
    "the queue of a sandbox unused for this long is removed from Redis",
  ),
  BERTH_PRUNE_DAYS: countOrNone(0).describe(
    "sandboxes unused for so many days are destroyed, with their workspaces; 0: never, since nothing brings a workspace back",
  ),
  BERTH_DRAIN_MS: count(30_000).describe("grace period of running jobs when the worker is asked to stop"),
  BERTH_ON_STOP: z
    .enum(["remove", "keep"])
    .default("remove")
    .describe("what happens to the containers of a worker that stops; keep: its next start adopts them"),
  BERTH_PARKED_COUNT: countOrNone(64).describe(
    "containers of sandboxes without a worker that are kept on this host for their next jobs, with nothing running in them; 0: none",
  ),
  BERTH_PARKED_MEMORY_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .optional()
    .describe("memory that they may hold in all; a tenth of the host's when absent"),
  BERTH_PARKED_MS: countOrNone(900_000).describe("such a container is removed after this long; 0: never"),
  BERTH_WARM_COUNT: countOrNone(2).describe(
    "containers that are started before a sandbox needs one, for new and returning tenants; about 5 MiB of the host's memory each. More while many are asked for. 0: none",
  ),
  BERTH_WARM_MOST: count(8).describe("such containers at most, while many sandboxes are being started"),
  BERTH_IMAGE_DAYS: countOrNone(30).describe(
    "an image that Berth has pulled is removed when no profile of this worker names it and no sandbox of this host was made of it for so many days; 0: never",
  ),
  BERTH_ON_NO_SANDBOX: z
    .enum(["wait", "refuse"])
    .default("wait")
    .describe(
      "what happens to jobs whose sandbox no worker can start now, for a temporary reason such as an engine that restarts",
    ),
  BERTH_APPROVAL_WEBHOOK: z
    .url({ protocol: /^https?$/, error: "it is an http or https address" })
    .optional()
    .describe("address that is called when a job begins to wait for an approval"),
  BERTH_WORKER_METRICS: listenAddress
    .optional()
    .describe("HOST:PORT where /metrics of this worker is open to everyone; no port when absent"),
  BERTH_LOG: z
    .enum(["fatal", "error", "warn", "info", "debug", "silent"])
    .default("info")
    .describe("how much is logged, as JSON lines on stdout"),
  ...tracingSettings,
});

type Settings = z.infer<typeof environment>;

export type Config = Readonly<ReturnType<typeof namedSettings>> & {
  /** The profiles of the configuration file, by name. */
  readonly profiles: ReadonlyMap<string, ProfileLayer>;
  /** The worker's whole environment, for what profiles pass on. */
  readonly variables: Readonly<Record<string, string | undefined>>;
};

/** The settings as the rest of the worker names them. */
function namedSettings(set: Settings) {
  return {
    redisUrl: set.REDIS_URL,
    accept: set.BERTH_ACCEPT,
    replicas: set.BERTH_REPLICAS,
    secretsKey: set.BERTH_SECRETS_KEY,
    secretsKeyFile: set.BERTH_SECRETS_KEY_FILE,
    engineHost: set.DOCKER_HOST,
    fleet: set.BERTH_FLEET,
    workerId: set.BERTH_WORKER_ID,
    host: set.BERTH_HOST,
    storage: set.BERTH_STORAGE,
    pools: set.BERTH_POOLS,
    scope: set.BERTH_SCOPE,
    base: baseProfile(set),
    workspacesRoot: set.BERTH_WORKSPACES,
    diskFloorBytes: set.BERTH_DISK_FLOOR_BYTES,
    quotaBackend: set.BERTH_QUOTA_BACKEND,
    mountRoots: set.BERTH_MOUNTS,
    initPath: set.BERTH_INIT,
    artifactsDirectory: set.BERTH_ARTIFACTS,
    artifactLimits: {
      quotaBytes: set.BERTH_ARTIFACT_QUOTA_BYTES,
      keptMs: set.BERTH_ARTIFACT_DAYS * dayMs,
    },
    usageDays: set.BERTH_USAGE_DAYS,
    maxSandboxes: set.BERTH_MAX_SANDBOXES,
    maxRunning: set.BERTH_MAX_RUNNING,
    leaseMs: set.BERTH_LEASE_MS,
    quantumMs: set.BERTH_QUANTUM_MS,
    sweepMs: set.BERTH_SWEEP_MS,
    forgetMs: set.BERTH_FORGET_MS,
    pruneMs: set.BERTH_PRUNE_DAYS * dayMs,
    drainMs: set.BERTH_DRAIN_MS,
    removeOnStop: set.BERTH_ON_STOP === "remove",
    parked: {
      count: set.BERTH_PARKED_COUNT,
      memoryBytes: set.BERTH_PARKED_MEMORY_BYTES,
      ageMs: set.BERTH_PARKED_MS,
    },
    warm: { count: set.BERTH_WARM_COUNT, most: set.BERTH_WARM_MOST },
    imageUnusedMs: set.BERTH_IMAGE_DAYS * dayMs,
    onNoSandbox: set.BERTH_ON_NO_SANDBOX,
    approvalWebhook: set.BERTH_APPROVAL_WEBHOOK,
    metricsListen: set.BERTH_WORKER_METRICS,
    logLevel: set.BERTH_LOG,
    tracing: tracingOf(set),
  };
}

/** The base of every named profile: the built-in one and the variables. */
function baseProfile(set: Settings): SandboxProfile {
  return sandboxProfile.parse({
    mode: set.BERTH_MODE,
    image: set.BERTH_IMAGE,
    runtime: set.BERTH_RUNTIME,
    network: set.BERTH_NETWORK,
    workspace: set.BERTH_WORKSPACE_ACCESS,
    idleMs: set.BERTH_IDLE_MS,
    maxAgeMs: set.BERTH_MAX_AGE_MS,
    parallel: set.BERTH_PARALLEL,
    limits: {
      memoryBytes: set.BERTH_MEMORY,
      cpus: set.BERTH_CPUS,
      pids: set.BERTH_PIDS,
      workspaceBytes: set.BERTH_QUOTA,
    },
    exec: { timeoutMs: set.BERTH_TIMEOUT },
  });
}

function defaultName(): string {
  const text = hostname()
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, "-")
    .replaceAll(/^[-_]+|[-_]+$/g, "");
  return text.slice(0, 63).replaceAll(/[-_]+$/g, "") || "worker";
}

/** Every problem at once, or the configuration. */
export function readConfig(
  variables: NodeJS.ProcessEnv = process.env,
): { config: Config } | { problems: string[] } {
  const set = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ""));
  const fromFile = readConfigFile(set.BERTH_CONFIG);
  const read = readEnvironment(environment, { ...fromFile.settings, ...set });
  const unknown = Object.keys(fromFile.settings)
    .filter((key) => !(key in environment.shape))
    .map((key) => `${set.BERTH_CONFIG}: ${key} is not a setting`);
  const problems = [...fromFile.problems, ...unknown, ...("problems" in read ? read.problems : [])];
  if ("problems" in read || problems.length > 0) return { problems };
  return { config: { ...namedSettings(read.config), profiles: fromFile.profiles, variables } };
}

/** Warns of variables that have Berth's prefix and that no program of Berth reads. */
export function settingWarnings(variables: NodeJS.ProcessEnv = process.env): string[] {
  return unknownSettings(variables, Object.keys(environment.shape));
}
