import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../config.ts";

/** The configured keys, or a generated key in the fleet's directory. */
export async function secretsEnvironment({
  directory,
  config,
}: {
  readonly directory: string;
  readonly config: Config;
}): Promise<Record<string, string>> {
  const { secretsKey: key, secretsKeyFile: file } = config;
  if (key !== undefined) return { BERTH_SECRETS_KEY: key };
  if (file !== undefined) return { BERTH_SECRETS_KEY_FILE: file };
  const own = join(directory, "secrets.key");
  try {
    await writeFile(own, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  return { BERTH_SECRETS_KEY_FILE: own };
}
