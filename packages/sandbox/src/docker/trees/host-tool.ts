import { execFile } from "node:child_process";
import { statfs } from "node:fs/promises";
import { z } from "zod";
import { treeFault } from "./tree-fault.ts";

const answer = z.looseObject({ error: z.string().optional(), detail: z.string().optional() });
const deadlineMs = 60_000;
const btrfsType = 0x9123683e;
/** The inode of a subvolume's own directory. */
const subvolumeInode = 256;

export type VolumeCall =
  | readonly ["create" | "delete", string]
  | readonly ["snapshot" | "freeze" | "swap", string, string];

/**
 * `init volume` on the host: operations of the file system on whole directories of the worker's own. It runs nothing of a tenant's, and
 * opens nothing that is in them.
 */
export class HostTool {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async volume(...call: VolumeCall): Promise<void> {
    const text = await new Promise<string>((resolve, reject) => {
      execFile(this.#path, ["volume", ...call], { timeout: deadlineMs, env: {} }, (error, stdout) =>
        // What went wrong is on stdout, whatever its exit code.
        stdout === "" && error ? reject(error) : resolve(stdout),
      );
    }).catch((cause: Error) => {
      throw treeFault({ error: "failed", detail: cause.message }, { cause });
    });
    const said = answer.parse(JSON.parse(text));
    if (said.error !== undefined) throw treeFault({ error: said.error, detail: said.detail ?? "" });
  }
}

export async function isBtrfs(path: string): Promise<boolean> {
  return (await statfs(path)).type === btrfsType;
}

export function isSubvolume({ ino }: { readonly ino: number }): boolean {
  return ino === subvolumeInode;
}
