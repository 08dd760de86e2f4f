import { readFileSync } from "node:fs";
import { type ProfileLayer, problemsOf, profileLayer, profileName } from "@berth/protocol";
import { parse } from "yaml";
import { z } from "zod";

export interface ConfigFile {
  readonly settings: Readonly<Record<string, unknown>>;
  readonly profiles: ReadonlyMap<string, ProfileLayer>;
  readonly problems: readonly string[];
}

const content = z.looseObject({ profiles: z.record(profileName, profileLayer).default({}) });

/** The file that BERTH_CONFIG names. YAML; JSON is YAML too. Every problem begins with its path. */
export function readConfigFile(path: string | undefined): ConfigFile {
  const nothing = { settings: {}, profiles: new Map() };
  if (path === undefined) return { ...nothing, problems: [] };
  const failed = (problems: readonly string[]) => ({
    ...nothing,
    problems: problems.map((problem) => `${path}: ${problem}`),
  });
  try {
    const parsed = content.safeParse(parse(readFileSync(path, "utf8")) ?? {});
    if (!parsed.success) return failed(problemsOf(parsed.error));
    const { profiles, ...settings } = parsed.data;
    return { settings, profiles: new Map(Object.entries(profiles)), problems: [] };
  } catch (error) {
    return failed([error instanceof Error ? error.message : String(error)]);
  }
}
