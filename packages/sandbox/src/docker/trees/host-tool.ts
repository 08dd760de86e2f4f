import { execFile } from "node:child_process";
import { statfs } from "node:fs/promises";
import { z } from "zod";
import { treeFault } from "./tree-fault.ts";

const answer = z.looseObject({
  error: z.string().optional(),
  detail: z.string().optional(),
  number: z.number().optional(),
  on: z.boolean().optional(),
});
export type VolumeAnswer = z.infer<typeof answer>;
const deadlineMs = 60_000;
const btrfsType = 0x9123683e;
/** The inode of a subvolume's own directory. */
const subvolumeInode = 256;

export type VolumeCall =
  | readonly ["create" | "delete", string]
  | readonly ["snapshot" | "freeze" | "swap", string, string]
  /** Of quotas; packages/init/c/volume-quota.h has the words. */
  | readonly ["project" | "groups" | "groups-on", string]
  | readonly ["project-set" | "group-limit", string, number]
  | readonly ["project-try", string, string]
  | readonly ["project-limit", string, string, number, number, number];

/**
 * `init volume` on the host: operations of the file system on whole directories of the worker's own. It runs nothing of a tenant's, and
 * opens nothing that is in them.
 */
export class HostTool {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async volume(...call: VolumeCall): Promise<VolumeAnswer> {
    const said = await this.ask(...call);
    if (said.error !== undefined) throw treeFault({ error: said.error, detail: said.detail ?? "" });
    return said;
  }

  /** With the kernel's words, if it refused. */
  async ask(...call: VolumeCall): Promise<VolumeAnswer> {
    const text = await new Promise<string>((resolve, reject) => {
      execFile(
        this.#path,
        ["volume", ...call.map(String)],
        { timeout: deadlineMs, env: {} },
        (error, stdout) =>
          // What went wrong is on stdout, whatever its exit code.
          stdout === "" && error ? reject(error) : resolve(stdout),
      );
    }).catch((cause: Error) => {
      throw treeFault({ error: "failed", detail: cause.message }, { cause });
    });
    return answer.parse(JSON.parse(text));
  }
}

export async function isBtrfs(path: string): Promise<boolean> {
  return (await statfs(path)).type === btrfsType;
}

export function isSubvolume({ ino }: { readonly ino: number }): boolean {
  return ino === subvolumeInode;
}
