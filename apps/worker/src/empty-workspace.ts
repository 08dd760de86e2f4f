import { FileRefusal, isFault } from "@berth/protocol";
import type { Sandbox } from "@berth/sandbox";

/** Entries of a workspace's root removed between two listings. */
const removedAtOnce = 1_000;

/** Gives each entry of the root a name that a path may have. Renaming needs no permission of the entry's own. */
const renameAll =
  'n=0; for f in * .[!.]* ..?*; do if [ -e "$f" ] || [ -L "$f" ]; then n=$((n+1)); mv -- "$f" ".destroyed-$$-$n"; fi; done';

export interface EmptyOptions {
  readonly signal: AbortSignal;
  /** Rounds of listing and removing. One is enough for up to a thousand entries, if no process adds to them. */
  readonly passes: number;
}

/**
 * Removes everything in a workspace, as the tenant. Returns undefined when it is empty, or else the reason why it is not: the tenant can
 * prevent it by permissions, and by processes that go on writing or keep files in use.
 */
export async function emptyWorkspace(
  sandbox: Sandbox,
  { signal, passes }: EmptyOptions,
): Promise<string | undefined> {
  let isRenamed = false;
  try {
    for (let pass = 0; ; pass++) {
      const { items } = await sandbox.files.list("", { signal, maxItems: removedAtOnce });
      if (items.length === 0) return undefined;
      if (pass === passes) return "there are more files than one pass removes";
      let removed = 0;
      for (const { path } of items) removed += await removeEntry(sandbox, path, signal);
      if (removed > 0) continue;
      // Names with control characters, or that are not UTF-8.
      if (isRenamed) return "there are files whose names cannot be used";
      await sandbox.exec({ command: renameAll, env: { LC_ALL: "C" } }, { signal });
      isRenamed = true;
    }
  } catch (error) {
    if (error instanceof FileRefusal) return error.message;
    if (isFault(error, "operation-timeout") || isFault(error, "file-operation-failed")) return error.message;
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
