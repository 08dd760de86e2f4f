import { readFile } from "node:fs/promises";
import { Fault } from "@berth/protocol";

/** The JSON of a profile's seccomp file, as the engine takes it. Undefined: Berth's own profile. */
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

/** JSON.parse's error is dropped: it quotes the file, and a tenant may read it. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
