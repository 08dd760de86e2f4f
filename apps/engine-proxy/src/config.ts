import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { fleetId, problemsOf, sandboxProfile, unknownSettings } from "@berth/protocol";
import { type ContainerRules, defaultRuntime, withTag } from "@berth/sandbox/container";
import { readEnvironment } from "@berth/service";
import { parse } from "yaml";
import { z } from "zod";

const list = z
  .string()
  .transform((text) => text.split(",").map((part) => part.trim()))
  .pipe(z.array(z.string().min(1)).min(1))
  .optional();
const { image: defaultImage } = sandboxProfile.parse({});

/** Every variable, with what it means. The table in docs/configuration.md is made from this. */
export const environment = z.object({
  BERTH_FLEET: z
    .string()
    .pipe(fleetId)
    .prefault("default")
    .describe("the fleet whose containers workers may touch"),
  BERTH_WORKSPACES: z
    .string()
    .default("/var/lib/berth/workspaces")
    .transform((path) => resolve(path))
    .describe("the workers' folder of workspaces, under the same path"),
  BERTH_CONFIG: z
    .string()
    .optional()
    .describe("the workers' configuration file: its profiles' images and runtimes are allowed"),
  BERTH_IMAGE: z.string().optional().describe("the workers' image"),
  BERTH_RUNTIME: z.string().optional().describe("the workers' runtime"),
  BERTH_WORKER_USER: z
    .string()
    .optional()
    .describe("the user that workers run as; root: each sandbox has a uid of its own"),
  BERTH_PROXY_IMAGES: list.describe(
    "images that sandboxes may be made of, separated by commas; when absent: those that the workers' settings and profiles name, and berth-sandbox:bookworm",
  ),
  BERTH_PROXY_RUNTIMES: list.describe(
    "runtimes that they may have, `default` for the engine's own; when absent: those that the workers' settings and profiles name",
  ),
  BERTH_PROXY_NETWORKS: list.describe("networks that they may have; when absent: none"),
  BERTH_PROXY_USERS: list.describe(
    "further `uid:gid` that they may have; when absent: BERTH_WORKER_USER, unless it is root",
  ),
  BERTH_PROXY_ENGINE: z.string().default("/var/run/docker.sock").describe("the engine's socket"),
  BERTH_PROXY_SOCKET: z
    .string()
    .default("/run/berth-engine/engine.sock")
    .describe("the socket that workers use in its place"),
});

export interface Config {
  readonly rules: Omit<ContainerRules, "rootless">;
  /** The engine's own socket. */
  readonly engineSocket: string;
  /** The socket that workers use in its place. */
  readonly proxySocket: string;
}

/** The part of the workers' configuration file that decides which containers they make. */
const workersFile = z.looseObject({
  BERTH_IMAGE: z.string().optional(),
  BERTH_RUNTIME: z.string().optional(),
  profiles: z
    .record(z.string(), z.looseObject({ image: z.string().optional(), runtime: z.string().optional() }))
    .default({}),
});

/** Returns the configuration, or all problems at once. */
export function readConfig(
  variables: NodeJS.ProcessEnv = process.env,
): { config: Config } | { problems: string[] } {
  const read = readEnvironment(environment, variables);
  if ("problems" in read) return read;
  const file = readWorkersFile(read.config.BERTH_CONFIG);
  if ("problems" in file) return file;
  const { BERTH_PROXY_ENGINE: engineSocket, BERTH_PROXY_SOCKET: proxySocket } = read.config;
  return { config: { rules: rulesOf(read.config, file.content), engineSocket, proxySocket } };
}

/** Warns of variables that have Berth's prefix and that no program of Berth reads. */
export function settingWarnings(variables: NodeJS.ProcessEnv = process.env): string[] {
  return unknownSettings(variables, Object.keys(environment.shape));
}

/** Takes a rule that is not set from the workers' settings, so that workers may use what their profiles name and no more. */
function rulesOf(
  config: z.infer<typeof environment>,
  file: z.infer<typeof workersFile>,
): Omit<ContainerRules, "rootless"> {
  // A variable that is set wins over the file, as in the worker.
  const ownImage = config.BERTH_IMAGE ?? file.BERTH_IMAGE ?? defaultImage;
  const runtime = config.BERTH_RUNTIME ?? file.BERTH_RUNTIME ?? defaultRuntime;
  const profiles = Object.values(file.profiles);
  const images = profiles.flatMap((profile) => profile.image ?? []);
  const runtimes = profiles.flatMap((profile) => profile.runtime ?? []);
  const worker = config.BERTH_WORKER_USER ?? "";
  return {
    fleet: config.BERTH_FLEET,
    workspacesRoot: config.BERTH_WORKSPACES,
    networks: config.BERTH_PROXY_NETWORKS ?? ["none"],
    images: (config.BERTH_PROXY_IMAGES ?? [ownImage, defaultImage, ...images]).map(withTag),
    runtimes: config.BERTH_PROXY_RUNTIMES ?? [runtime, ...runtimes],
    users: config.BERTH_PROXY_USERS ?? (/^[1-9]\d*:[1-9]\d*$/.test(worker) ? [worker] : []),
  };
}

function readWorkersFile(
  path: string | undefined,
): { content: z.infer<typeof workersFile> } | { problems: string[] } {
  try {
    const parsed = workersFile.safeParse(path === undefined ? {} : (parse(readFileSync(path, "utf8")) ?? {}));
    if (parsed.success) return { content: parsed.data };
    return { problems: problemsOf(parsed.error).map((problem) => `${path}: ${problem}`) };
  } catch (error) {
    return { problems: [`${path}: ${error instanceof Error ? error.message : error}`] };
  }
}
