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
  /** Quotas; packages/init/c/volume-quota.h describes these calls. */
  | readonly ["project" | "groups" | "groups-on", string]
  | readonly ["project-set" | "group-limit", string, number]
  | readonly ["project-try", string, string]
  | readonly ["project-limit", string, string, number, number, number];

/** Runs `init volume` on the host: operations of the file system on whole directories of the worker's own. It opens nothing in them. */
export class HostTool {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async volume(...call: VolumeCall): Promise<VolumeAnswer> {
    const answered = await this.ask(...call);
    const { error, detail = "" } = answered;
    if (error !== undefined) throw treeFault({ error, detail });
    return answered;
  }

  /** Does not throw. A failure is an answer with `error`, and with the kernel's message as `detail`. */
  async ask(...call: VolumeCall): Promise<VolumeAnswer> {
    try {
      return answer.parse(JSON.parse(await this.#run(call)));
    } catch (error) {
      return { error: "failed", detail: error instanceof Error ? error.message : String(error) };
    }
  }

  #run(call: VolumeCall): Promise<string> {
    return new Promise((resolve, reject) => {
      const args = ["volume", ...call.map(String)];
      execFile(this.#path, args, { timeout: deadlineMs, env: {} }, (error, stdout) =>
        // init writes its error to stdout, too, and then exits with 1.
        stdout === "" && error ? reject(error) : resolve(stdout),
      );
    });
  }
}

export async function isBtrfs(path: string): Promise<boolean> {
  return (await statfs(path)).type === btrfsType;
}

export function isSubvolume({ ino }: { readonly ino: number }): boolean {
  return ino === subvolumeInode;
}
