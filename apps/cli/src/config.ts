import { isAbsolute, resolve } from "node:path";
import { sandboxProfile } from "@berth/protocol";
import { z } from "zod";

const environment = z.object({
  DOCKER_HOST: z
    .string()
    .regex(/^(unix:\/\/\/|tcp:\/\/|https?:\/\/)/, {
      error: "DOCKER_HOST is unix:///path, tcp://host:port or http(s)://",
    })
    .optional()
    .describe("where the container engine listens; its default socket when absent"),
  REDIS_URL: z.string().min(1).optional().describe("a Redis to use; one of our own is started when absent"),
  PATH: z.string().default("/usr/local/bin:/usr/bin:/bin"),
  BERTH_IMAGE: sandboxProfile.shape.image.describe("image of the sandboxes"),
  BERTH_RUNTIME: sandboxProfile.shape.runtime.describe("OCI runtime of the sandboxes, such as runsc"),
  BERTH_WORKSPACES: z
    .string()
    .default(".berth/workspaces")
    .transform((path) => (isAbsolute(path) ? path : resolve(path)))
    .describe("directory that holds the workspaces; the same path for the engine"),
});

export type Config = z.infer<typeof environment>;

/** Exit code of a configuration that cannot be used, as in sysexits.h. */
export const exitBadConfig = 78;

/** Every problem at once, or the configuration. */
export function readConfig(
  variables: NodeJS.ProcessEnv = process.env,
): { config: Config } | { problems: string[] } {
  const set = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ""));
  const parsed = environment.safeParse(set);
  if (parsed.success) return { config: parsed.data };
  return { problems: parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`) };
}
