import { readFile } from "node:fs/promises";
import { Fault } from "@berth/protocol";

/** A seccomp profile as the engine takes it: its JSON. Undefined: ours. */
export async function readSeccomp(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const text = await readFile(path, "utf8").catch((error: Error) => {
    throw new Fault("seccomp-unusable", { path, detail: error.message }, { cause: error });
  });
  const profile = parsed(text);
  if (typeof profile === "object" && profile !== null && "defaultAction" in profile)
    return JSON.stringify(profile);
  throw new Fault("seccomp-unusable", { path, detail: "it is not a seccomp profile in JSON" });
}

/** Nothing of the file goes into an error, which the tenant may read. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
