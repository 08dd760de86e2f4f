import { type ArtifactRef, abortReason, BoundedWait, FileRefusal, type JobResult } from "@berth/protocol";
import { fileChunks } from "../files/file-chunks.ts";
import { inPool } from "../in-pool.ts";
import type { RunContext } from "../run-context.ts";
import { ArtifactFiles, type WantedFiles } from "./artifact-files.ts";
import type { ArtifactsPort, KeepAnswer } from "./artifacts-port.ts";
import { RefusedArtifacts } from "./refused-artifacts.ts";
import { withSmallContents } from "./small-files.ts";

const keptAtOnce = 4;
/** Time limit for all files of a command. Files not kept by then are reported as refused. */
const collectMs = 120_000;

/** Adds the kept files to a command's result. Does not change the outcome. */
export type Collect = (result: JobResult) => Promise<JobResult>;

/** Call before the command; call the returned function after it. */
export async function watchArtifacts(wanted: WantedFiles, context: RunContext): Promise<Collect> {
  const { artifacts } = context;
  if (wanted.globs.length === 0 && (wanted.cwd === undefined || !artifacts)) return async (result) => result;
  const refused = new RefusedArtifacts();
  if (!artifacts) {
    for (const glob of wanted.globs) refused.add(glob, "not-kept", "this worker keeps no artifacts");
    return async (result) => ({ ...result, value: { ...result.value, ...refused.value() } });
  }
  const files = new ArtifactFiles(context.sandbox.files, wanted);
  await files.look(context.signal);
  return async (result) => {
    // Nothing ran, or the outcome is unknown, or the caller cancelled.
    if (["refused", "lost", "cancelled"].includes(result.outcome.kind)) return result;
    const kept = await keepAll(files, refused, artifacts, context);
    const value = { ...result.value, ...(kept.length > 0 ? { artifacts: kept } : {}), ...refused.value() };
    return { ...result, value };
  };
}

/** Does not throw if a file, the sandbox or the store fails: the command has run, and its result must be published. */
async function keepAll(
  files: ArtifactFiles,
  refused: RefusedArtifacts,
  artifacts: ArtifactsPort,
  context: RunContext,
): Promise<ArtifactRef[]> {
  using wait = new BoundedWait().endWith(context.signal).endAfter(collectMs);
  const { signal } = wait;
  const kept = new Map<string, ArtifactRef>();
  const failed = (path: string, error: unknown) => {
    if (error instanceof FileRefusal) refused.add(path, "unreadable", error.message);
    else if (context.signal.aborted)
      refused.add(path, "not-kept", `cancelled: ${abortReason(context.signal)}`);
    else if (wait.isLate) refused.add(path, "not-kept", `keeping the files took longer than ${collectMs} ms`);
    else refused.add(path, "not-kept", error instanceof Error ? error.message : String(error));
  };
  const keep = async (
    path: string,
    size: number,
    held: Uint8Array | undefined,
  ): Promise<KeepAnswer | undefined> => {
    try {
      signal.throwIfAborted();
      // Reads one byte past the limit, to notice a file that grew since it was listed.
      const maxBytes = artifacts.maxBytes + 1;
      const source = held ? oneChunk(held) : fileChunks(context.sandbox.files, path, { maxBytes, signal });
      return await artifacts.keep(path, source, held?.length ?? size);
    } catch (error) {
      failed(path, error);
      return undefined;
    }
  };
  const found = await files.found(signal, refused).catch((error: unknown) => {
    failed("", error);
    return [];
  });
  for await (const { entries, contents } of withSmallContents(context.sandbox.files, found, signal)) {
    await inPool(keptAtOnce, async (add) => {
      for (const { path, size } of entries) {
        await add(async () => {
          const answer = await keep(path, size, contents.get(path));
          if (!answer) return;
          if ("refused" in answer) {
            refused.add(path, answer.refused.code, answer.refused.reason);
            return;
          }
          kept.set(path, answer.kept);
          await context.onArtifact?.(answer.kept);
        });
      }
    });
  }
  return found.flatMap(({ path }) => kept.get(path) ?? []);
}

async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
