import { createHash } from "node:crypto";
import { lstat, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { Fault, type SandboxKey } from "@berth/protocol";
import { z } from "zod";
import type { TreeOrigin } from "../../trees.ts";
import { writeNote } from "../host-files.ts";

const remembered = z.strictObject({ of: z.string() });

/** The file that names the snapshot a workspace was made of. It lies beside the workspaces, where no sandbox can write. */
function originPath(key: SandboxKey, root: string): string {
  return join(root, ".forks", `${createHash("sha256").update(key).digest("hex").slice(0, 32)}.json`);
}

/** Call before the workspace has its name. A note without a workspace has no effect, and is removed before another one is made. */
export async function noteOrigin(key: SandboxKey, root: string, of: string): Promise<void> {
  await writeNote(originPath(key, root), { of });
}

export async function forgetOrigin(key: SandboxKey, root: string): Promise<void> {
  const path = originPath(key, root);
  await rm(path, { force: true }).catch((cause: Error) => {
    throw new Fault("workspace-unusable", { path, detail: cause.message }, { cause });
  });
}

/** Only looks: a container may be running in the workspace. */
export async function readOrigin(key: SandboxKey, root: string): Promise<TreeOrigin> {
  const path = join(root, key);
  const isThere = await lstat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return false;
      throw error;
    },
  );
  if (!isThere) return { kind: "absent" };
  try {
    return {
      kind: "fork",
      of: remembered.parse(JSON.parse(await readFile(originPath(key, root), "utf8"))).of,
    };
  } catch {
    // No note: not a fork.
    return { kind: "own" };
  }
}
