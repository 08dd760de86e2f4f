import { createHash } from "node:crypto";
import { chmod, lstat, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { Fault, type SandboxKey } from "@berth/protocol";

/** Processes that own a socket in it need only search permission; the names are random. */
const directoryMode = 0o711;

/**
 * A directory of one sandbox's, beside the workspaces, where the worker listens for its init. The container has it read-only, and
 * it stays as long as the workspace does: a container that is adopted sees the next worker's socket in it.
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

/** A key may be longer than a name, and the engine's proxy lets only such names through. */
function linkDirectory(key: SandboxKey, root: string): string {
  return join(root, ".link", createHash("sha256").update(key).digest("hex").slice(0, 32));
}

async function makeDirectory(path: string): Promise<void> {
  await mkdir(path, { mode: directoryMode }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  const found = await lstat(path);
  if (!found.isDirectory()) throw new Error("it is not a directory");
  // Whatever the worker's umask was.
  if ((found.mode & 0o7777) !== directoryMode) await chmod(path, directoryMode);
}
