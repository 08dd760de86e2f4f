import type { ValueOf } from "@berth/protocol";
import { workspaceName } from "../files/workspace-name.ts";
import { problemText, Refusal, type RequestOf, type RunContext } from "../run-context.ts";
import { contentBytes } from "./write.ts";

/** Writes every file it can, then reports those it could not. */
export async function runCopy(
  { files }: RequestOf<"copy">,
  { sandbox, signal }: RunContext,
): Promise<ValueOf<"copy">> {
  refuseTwice(files.map(({ path }) => path));
  const written = await sandbox.files.writeMany(
    files.map((file) => ({ path: file.path, bytes: contentBytes(file), mode: file.mode })),
    { signal },
  );
  const { bytes: size, refused } = written;
  const refusals = new Map(refused.map(({ path, refusal }) => [workspaceName(path), refusal]));
  const count = written.count;
  const problems = files.flatMap(({ path }) => {
    const refusal = refusals.get(workspaceName(path));
    return refusal ? [{ path, refusal }] : [];
  });
  const [first] = problems;
  if (!first) return { count, size };
  const texts = problems.map(({ path, refusal: { message } }) =>
    message.includes(path) ? message : `${path}: ${message}`,
  );
  throw new Refusal(
    first.refusal.code,
    `${problems.length} of ${files.length} files were not written: ${problemText(texts)}`,
    { count, size },
  );
}

/** Refuses a path that is named twice: the files are written in parallel, so chance would decide which one stays. */
function refuseTwice(paths: readonly string[]): void {
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const path of paths.map(workspaceName)) (seen.has(path) ? twice : seen).add(path);
  if (twice.size > 0)
    throw new Refusal("invalid-request", `named more than once: ${problemText([...twice])}`);
}
