import { createHash } from "node:crypto";
import { chmod, lstat, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { Fault, type SandboxKey } from "@berth/protocol";

/** The socket's name is random, and init knows it: search permission is enough. */
const directoryMode = 0o711;

/**
 * The directory in which the worker listens for one sandbox's init. It lies beside the workspaces, and the container has it read-only. It
 * stays as long as the workspace does, so that an adopted container sees the next worker's socket in it.
 */
export async function prepareLinkDirectory(key: SandboxKey, root: string): Promise<string> {
  const directory = linkDirectory(key, root);
  try {
    await makeDirectory(join(root, ".link"));
    await makeDirectory(directory);
    return directory;
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new Fault("workspace-unusable", { path: directory, detail }, { cause: error });
  }
}

/** Removes the sockets of a worker that died while it listened. No container of this sandbox may be running. */
export async function clearLinkDirectory(directory: string): Promise<void> {
  const names = await readdir(directory).catch(() => []);
  await Promise.all(names.map((name) => rm(join(directory, name), { force: true })));
}

export async function removeLinkDirectory(key: SandboxKey, root: string): Promise<void> {
  await rm(linkDirectory(key, root), { recursive: true, force: true });
}

/** A hash, since a key may be longer than a file's name. The engine proxy allows only such names. */
function linkDirectory(key: SandboxKey, root: string): string {
  return join(root, ".link", createHash("sha256").update(key).digest("hex").slice(0, 32));
}

async function makeDirectory(path: string): Promise<void> {
  await mkdir(path, { mode: directoryMode }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  const found = await lstat(path);
  if (!found.isDirectory()) throw new Error("it is not a directory");
  // mkdir's mode is cut by the worker's umask.
  if ((found.mode & 0o7777) !== directoryMode) await chmod(path, directoryMode);
}
