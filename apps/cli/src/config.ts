import { isAbsolute, resolve } from "node:path";
import {
  acceptanceSettings,
  quotaBackends,
  redisUrl,
  sandboxProfile,
  unknownSettings,
} from "@berth/protocol";
import { secretsSettings } from "@berth/secrets";
import { z } from "zod";

/** A gateway's address. */
export const gatewayUrl = z.string().refine(isPlainHttpUrl, {
  error: "BERTH_URL is http:// or https://, without a name or password in it; the key goes into BERTH_KEY",
});

export const environment = z.object({
  REDIS_URL: redisUrl
    .optional()
    .describe("the fleet's Redis (redis://127.0.0.1:6379); dev and tour start one of their own when absent"),
  ...acceptanceSettings,
  BERTH_URL: gatewayUrl.optional().describe("a gateway, which is then used instead of Redis"),
  BERTH_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, { error: "BERTH_KEY is printable ASCII without spaces" })
    .optional()
    .describe("key for the gateway"),
  BERTH_ARTIFACTS: z
    .string()
    .optional()
    .describe(
      "the workers' artifact directory, if it can be seen from here; without it, with Redis, only small ones are fetched",
    ),
  ...secretsSettings,
  DOCKER_HOST: z
    .string()
    .regex(/^(unix:\/\/\/|tcp:\/\/|https?:\/\/)/, {
      error: "DOCKER_HOST is unix:///path, tcp://host:port or http(s)://",
    })
    .optional()
    .describe("the container engine, for dev, doctor and tour; its default socket when absent"),
  BERTH_IMAGE: sandboxProfile.shape.image.describe("image of the sandboxes, for dev, doctor and tour"),
  BERTH_RUNTIME: sandboxProfile.shape.runtime.describe("OCI runtime of those, such as runsc"),
  BERTH_WORKSPACES: z
    .string()
    .default(".berth/workspaces")
    .transform((path) => (isAbsolute(path) ? path : resolve(path)))
    .describe("directory that holds the workspaces, for dev, doctor and tour; the same path for the engine"),
  BERTH_QUOTA_BACKEND: z
    .enum(quotaBackends)
    .default("auto")
    .describe("what bounds the workspaces of dev's, doctor's and tour's sandboxes, as for a worker"),
  BERTH_APPROVAL_WEBHOOK: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("address that dev's workers call when a job begins to wait for an approval"),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .string()
    .optional()
    .describe("a collector for the traces of dev's fleet, such as http://127.0.0.1:4318"),
  NO_COLOR: z.string().optional().describe("anything: no colours"),
  PATH: z.string().default("/usr/local/bin:/usr/bin:/bin").describe("where dev and tour find redis-server"),
  INIT_CWD: z.string().optional().describe("set by npm: where `npm run berth` was called"),
  npm_lifecycle_event: z.string().optional().describe("set by npm"),
});

export type Config = Readonly<ReturnType<typeof namedSettings>>;

/** The settings under the names that the rest of the CLI uses. */
function namedSettings(set: z.infer<typeof environment>) {
  return {
    redisUrl: set.REDIS_URL,
    accept: set.BERTH_ACCEPT,
    replicas: set.BERTH_REPLICAS,
    secretsKey: set.BERTH_SECRETS_KEY,
    secretsKeyFile: set.BERTH_SECRETS_KEY_FILE,
    gatewayUrl: set.BERTH_URL,
    gatewayKey: set.BERTH_KEY,
    artifactsDirectory: set.BERTH_ARTIFACTS,
    engineHost: set.DOCKER_HOST,
    image: set.BERTH_IMAGE,
    runtime: set.BERTH_RUNTIME,
    workspacesRoot: set.BERTH_WORKSPACES,
    quotaBackend: set.BERTH_QUOTA_BACKEND,
    approvalWebhook: set.BERTH_APPROVAL_WEBHOOK,
    tracesEndpoint: set.OTEL_EXPORTER_OTLP_ENDPOINT,
    noColor: set.NO_COLOR !== undefined,
    path: set.PATH,
    directory: directoryOf(set),
  };
}

const ofNpm = new Set(["INIT_CWD", "npm_lifecycle_event", "PATH"]);

/** Name and meaning of each variable that people set. */
export const variables: readonly (readonly [name: string, about: string])[] = Object.entries(
  environment.shape,
)
  .filter(([name]) => !ofNpm.has(name))
  .map(([name, schema]) => [name, schema.description ?? ""]);

/** The configuration, or an error that lists every problem. An empty variable counts as absent. */
export function readConfig(
  given: NodeJS.ProcessEnv = process.env,
): { config: Config } | { problems: string[] } {
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ""));
  const parsed = environment.safeParse(set);
  if (parsed.success) return { config: namedSettings(parsed.data) };
  return { problems: parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`) };
}

/** Warns about variables with Berth's prefix that no program of Berth reads. */
export function settingWarnings(given: NodeJS.ProcessEnv = process.env): string[] {
  return unknownSettings(given, Object.keys(environment.shape));
}

/** npm runs scripts in the package's directory, but paths on the command line are relative to the caller's directory. */
function directoryOf({ INIT_CWD, npm_lifecycle_event }: z.infer<typeof environment>): string {
  return npm_lifecycle_event === "berth" && INIT_CWD !== undefined ? INIT_CWD : process.cwd();
}

function isPlainHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return (protocol === "http:" || protocol === "https:") && username === "" && password === "";
}

/** The value of an environment variable that the user names for a job. */
export function namedVariable(name: string, given: NodeJS.ProcessEnv = process.env): string | undefined {
  return given[name];
}
