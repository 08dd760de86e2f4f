import { FileRefusal } from "@berth/protocol";
import type { Sandbox } from "@berth/sandbox";

/** Entries of a workspace's root removed between two listings. */
const removedAtOnce = 1_000;

/** Gives each entry of the root a name that a path may have. Renaming needs no permission of the entry's own. */
const renameAll =
  'n=0; for f in * .[!.]* ..?*; do if [ -e "$f" ] || [ -L "$f" ]; then n=$((n+1)); mv -- "$f" ".destroyed-$$-$n"; fi; done';

export interface EmptyOptions {
  readonly signal: AbortSignal;
  /** Rounds of listing and removing. One is enough for up to a thousand entries that nobody adds to. */
  readonly passes: number;
}

/**
 * Removes everything in a workspace, as the tenant. False when something was in the way: the workspace's permissions, processes
 * that go on writing, or more entries than the passes take.
 */
export async function emptyWorkspace(sandbox: Sandbox, { signal, passes }: EmptyOptions): Promise<boolean> {
  const { files } = sandbox;
  let isRenamed = false;
  try {
    for (let pass = 0; ; pass++) {
      const { items } = await files.list("", { signal, maxItems: removedAtOnce });
      if (items.length === 0) return true;
      if (pass === passes) return false;
      let removed = 0;
      for (const { path } of items) removed += await removeEntry(sandbox, path, signal);
      if (removed > 0) continue;
      // Names with control characters, or that are not UTF-8.
      if (isRenamed) return false;
      await sandbox.exec({ command: renameAll, env: { LC_ALL: "C" } }, { signal });
      isRenamed = true;
    }
  } catch (error) {
    if (error instanceof FileRefusal) return false;
    throw error;
  }
}

async function removeEntry({ files }: Sandbox, path: string, signal: AbortSignal): Promise<number> {
  try {
    return await files.remove(path, { recursive: true, missingOk: true, signal });
  } catch (error) {
    if (error instanceof FileRefusal && error.code === "invalid-path") return 0;
    throw error;
  }
}
