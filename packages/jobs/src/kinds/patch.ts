import { FileRefusal, pathProblem, type ValueOf } from "@berth/protocol";
import { applyChanges, type FileChange } from "../files/change-set.ts";
import { readWhole } from "../files/read-whole.ts";
import { workspaceName } from "../files/workspace-name.ts";
import { problemText, Refusal, type RequestOf, type RunContext } from "../run-context.ts";
import { applyHunks, SearchBudget } from "../text/apply-hunks.ts";
import { type FilePatch, parseDiff } from "../text/unified-diff.ts";

/** Sum over all files of one patch, because they are in memory at once. */
const maxPatchedBytes = 8 * 1024 * 1024;

export async function runPatch({ diff }: RequestOf<"patch">, context: RunContext): Promise<ValueOf<"patch">> {
  const draft = new Draft(context);
  const problems: string[] = [];
  for (const patch of parseDiff(diff)) problems.push(...(await draft.apply(patch)));
  if (problems.length > 0) {
    throw new Refusal("patch-failed", `nothing was changed: ${problemText(problems)}`);
  }
  const changes = draft.changes();
  await applyChanges(changes, context);
  return { count: changes.length };
}

/** A file of the draft. `content` has one character per byte, and is absent where the patch leaves no file. */
interface DraftFile {
  readonly before: FileChange["before"];
  content: string | undefined;
  mode: number | undefined;
}

/** The workspace as the patch would leave it, in memory. */
class Draft {
  readonly #context: RunContext;
  readonly #files = new Map<string, DraftFile>();
  readonly #budget = new SearchBudget();
  #roomBytes = maxPatchedBytes;

  constructor(context: RunContext) {
    this.#context = context;
  }

  /** Names the file and the hunk of a problem. */
  async apply(patch: FilePatch): Promise<string[]> {
    const name = patch.newPath ?? patch.oldPath ?? "";
    try {
      return (await this.#apply(patch)).map((problem) => `${name}: ${problem}`);
    } catch (error) {
      if (!(error instanceof FileRefusal)) throw error;
      return [error.message.includes(name) ? error.message : `${name}: ${error.message}`];
    }
  }

  changes(): FileChange[] {
    return [...this.#files].flatMap(([path, { before, content, mode }]): FileChange[] => {
      if (content === undefined) return before ? [{ path, before, after: undefined }] : [];
      const bytes = Buffer.from(content, "latin1");
      const same =
        before && Buffer.compare(before.bytes, bytes) === 0 && (mode ?? before.mode) === before.mode;
      return same ? [] : [{ path, before, after: { bytes, mode } }];
    });
  }

  async #apply({ oldPath, newPath, mode, hunks }: FilePatch): Promise<string[]> {
    const source = oldPath === undefined ? undefined : await this.#load(oldPath);
    if (source && source.content === undefined) return ["no such file"];
    const applied = applyHunks(source?.content ?? "", hunks, this.#budget);
    if (applied.kind === "failed") return [...applied.problems];
    if (newPath === undefined) {
      if (applied.content !== "") return ["the patch removes the file, but not all of its lines"];
      if (source) source.content = undefined;
      return [];
    }
    const target = newPath === oldPath ? source : await this.#load(newPath);
    if (!target) return [];
    if (target !== source) {
      if (target.content !== undefined) return ["it exists already"];
      if (source) {
        target.mode = source.mode ?? source.before?.mode;
        source.content = undefined;
      }
    }
    target.content = applied.content;
    target.mode = mode ?? target.mode;
    return [];
  }

  async #load(path: string): Promise<DraftFile> {
    const name = workspaceName(path);
    const problem = name === "" ? "it names no file" : pathProblem(path);
    if (problem) throw new FileRefusal("invalid-path", `invalid path: ${problem}`);
    const known = this.#files.get(name);
    if (known) return known;
    const before = await this.#read(name);
    const content = before && Buffer.from(before.bytes).toString("latin1");
    const file: DraftFile = { before, content, mode: undefined };
    this.#files.set(name, file);
    return file;
  }

  async #read(name: string): Promise<FileChange["before"]> {
    try {
      const { bytes, sha256, mode } = await readWhole(name, Math.max(1, this.#roomBytes), this.#context);
      this.#roomBytes -= bytes.length;
      return { bytes, sha256, mode: mode & 0o777 };
    } catch (error) {
      if (error instanceof FileRefusal && error.code === "not-found") return undefined;
      throw error;
    }
  }
}
