import { createHash } from "node:crypto";
import { FileRefusal } from "@berth/protocol";
import { problemText, Refusal, type RunContext } from "../run-context.ts";

/** One file before and after; absent where it does not exist. */
export interface FileChange {
  readonly path: string;
  readonly before: { readonly bytes: Uint8Array; readonly sha256: string; readonly mode: number } | undefined;
  readonly after: { readonly bytes: Uint8Array; readonly mode: number | undefined } | undefined;
}

/**
 * Makes all changes or none. Makes each only if the file still equals `before`. If one fails, it undoes the earlier ones, again only
 * where no other process has touched the file since. Directories made on the way stay.
 */
export async function applyChanges(changes: readonly FileChange[], context: RunContext): Promise<void> {
  const made: FileChange[] = [];
  // Removals come last: their condition cannot be checked in the same step.
  const ordered = changes.toSorted((a, b) => Number(a.after === undefined) - Number(b.after === undefined));
  for (const change of ordered) {
    try {
      await make(change, context, context.signal);
      made.push(change);
    } catch (error) {
      const refused = error instanceof FileRefusal;
      // After a fault this change may have been made or not; undoing one that was not is refused and harmless.
      const undone = await takeBack(refused ? made : [...made, change], context);
      if (!refused) throw error;
      const why =
        error.code === "mismatch" ? `${change.path} was changed by something else meanwhile` : error.message;
      throw new Refusal(error.code, `${why}; ${undone}`);
    }
  }
}

async function make(
  { path, before, after }: FileChange,
  { sandbox }: RunContext,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { files } = sandbox;
  if (!after) {
    const found = await files.stat(path, { hash: true, signal });
    if (found.sha256 !== before?.sha256) throw new FileRefusal("mismatch", `${path} has changed`);
    await files.remove(path, { signal });
    return;
  }
  await files.write(path, after.bytes, {
    signal,
    ...(before ? { ifMatch: before.sha256 } : { mustNotExist: true }),
    ...(after.mode === undefined ? {} : { mode: after.mode }),
  });
}

/** Undoes the changes, without the job's signal: it may have stopped them. */
async function takeBack(made: readonly FileChange[], context: RunContext): Promise<string> {
  const left: string[] = [];
  for (const { path, before, after } of made.toReversed()) {
    const backwards: FileChange = {
      path,
      before: after && { bytes: after.bytes, sha256: sha256(after.bytes), mode: 0 },
      after: before,
    };
    await make(backwards, context, undefined).catch(() => left.push(path));
  }
  return left.length === 0 ? "nothing was changed" : `these could not be restored: ${problemText(left)}`;
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
