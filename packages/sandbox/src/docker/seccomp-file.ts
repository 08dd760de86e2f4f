import { readFile } from "node:fs/promises";
import { Fault } from "@berth/protocol";

/** A seccomp profile as the engine takes it: its JSON. Undefined: the engine's own. */
export async function readSeccomp(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    const profile: unknown = JSON.parse(await readFile(path, "utf8"));
    const isProfile = typeof profile === "object" && profile !== null && "defaultAction" in profile;
    if (!isProfile) throw new Error("it is not a seccomp profile");
    return JSON.stringify(profile);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new Fault("seccomp-unusable", { path, detail }, { cause: error });
  }
}
