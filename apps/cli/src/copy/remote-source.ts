import { posix } from "node:path";
import { type FileEntry, pathProblem } from "@berth/protocol";
import { Complaint } from "../complaint.ts";
import type { LeftOut } from "./local-source.ts";
import type { SendJob } from "./write-parts.ts";

/** Limit of one list job. */
const listedMost = 10_000;

export interface RemoteListing {
  readonly entries: readonly FileEntry[];
  readonly leftOut: readonly LeftOut[];
}

/** Lists a file, or a directory with everything in it. Paths are relative to the workspace, directories before their content. */
export async function listRemote(send: SendJob, path: string): Promise<RemoteListing> {
  const { value } = await send({ kind: "stat", path });
  const top = value.entries?.[0];
  if (!top) throw new Complaint(`${path}: no such file or directory in the sandbox`);
  if (top.type !== "directory") return sorted([{ ...top, path }]);
  const own = path === "" ? [] : [{ ...top, path }];
  return sorted([...own, ...(await beneath(send, path))]);
}

/** Lists recursively with one job if it fits, else with one job per directory. */
async function beneath(send: SendJob, path: string): Promise<FileEntry[]> {
  const all = await listing(send, path, true);
  if (!all.truncated) return all.entries;
  const found: FileEntry[] = [];
  const directories = [path];
  for (let at = directories.pop(); at !== undefined; at = directories.pop()) {
    const { entries, truncated } = await listing(send, at, false);
    if (truncated)
      throw new Complaint(`${posix.join("/workspace", at)} has more than ${listedMost} entries`, {
        advice: ["pack it in the sandbox and copy that: berth exec TENANT -- tar czf all.tgz DIR"],
      });
    found.push(...entries);
    directories.push(...entries.filter(({ type }) => type === "directory").map((entry) => entry.path));
  }
  return found;
}

async function listing(send: SendJob, path: string, recursive: boolean) {
  const { value } = await send({ kind: "list", path, recursive, maxItems: listedMost });
  return { entries: [...(value.entries ?? [])], truncated: value.truncated === true };
}

function sorted(entries: readonly FileEntry[]): RemoteListing {
  const leftOut = entries.flatMap(({ path, type }): LeftOut[] => {
    const problem = pathProblem(path);
    if (problem !== undefined) return [{ path, reason: problem }];
    return type === "other" ? [{ path, reason: "it is neither a file, a directory nor a link" }] : [];
  });
  const not = new Set(leftOut.map(({ path }) => path));
  const kept = entries.filter(({ path }) => !not.has(path));
  return { entries: kept.toSorted((a, b) => (a.path < b.path ? -1 : 1)), leftOut };
}
