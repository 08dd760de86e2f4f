import { hostname } from "node:os";
import { isAbsolute, resolve } from "node:path";
import { fleetId, sandboxProfile, workerId } from "@berth/protocol";
import { z } from "zod";

const number = (fallback: number) => z.coerce.number().int().positive().default(fallback);

const environment = z.object({
  REDIS_URL: z
    .string()
    .min(1)
    .default("redis://127.0.0.1:6379")
    .describe("redis://, rediss:// or unix:///path"),
  DOCKER_HOST: z.string().min(1).optional().describe("the container engine; its default socket when absent"),
  BERTH_FLEET: z.string().pipe(fleetId).prefault("default").describe("labels every container"),
  BERTH_WORKER_ID: z
    .string()
    .pipe(workerId)
    .prefault(defaultWorkerId)
    .describe("stable across restarts; the host's name when absent"),
  BERTH_IMAGE: sandboxProfile.shape.image.describe("image of the sandboxes"),
  BERTH_RUNTIME: sandboxProfile.shape.runtime.describe("OCI runtime, such as runsc"),
  BERTH_WORKSPACES: z
    .string()
    .default(".berth/workspaces")
    .transform((path) => (isAbsolute(path) ? path : resolve(path)))
    .describe("directory of the workspaces; the same path for the engine"),
  BERTH_MAX_SANDBOXES: number(8).describe("sandboxes held at once"),
  BERTH_PARALLEL: number(4).describe("jobs of one sandbox that run at once, each of another session"),
  BERTH_LEASE_MS: number(5_000).describe("a dead worker's sandboxes move after this long"),
  BERTH_IDLE_MS: number(1_800_000).describe("an idle sandbox is given up after this long"),
  BERTH_QUANTUM_MS: number(10_000).describe("under pressure a busy sandbox yields its slot after this long"),
  BERTH_SWEEP_MS: number(2_000).describe("how often forgotten sandboxes are offered again"),
  BERTH_DRAIN_MS: number(30_000).describe("what running jobs get to finish when the worker is told to stop"),
  BERTH_LOG: z.enum(["fatal", "error", "warn", "info", "debug", "silent"]).default("info"),
});

export type Config = z.infer<typeof environment>;

export const exitBadConfig = 78;

function defaultWorkerId(): string {
  const name = hostname()
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, "-")
    .replaceAll(/^[-_]+|[-_]+$/g, "");
  return name.slice(0, 63) || "worker";
}

/** Every problem at once, or the configuration. */
export function readConfig(
  variables: NodeJS.ProcessEnv = process.env,
): { config: Config } | { problems: string[] } {
  const set = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ""));
  const parsed = environment.safeParse(set);
  if (parsed.success) return { config: parsed.data };
  return { problems: parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`) };
}
