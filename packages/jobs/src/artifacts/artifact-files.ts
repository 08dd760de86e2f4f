import { type FileEntry, FileRefusal, pathProblem, withoutWorkspacePrefix } from "@berth/protocol";
import type { Listing, SandboxFiles } from "@berth/sandbox/port";
import { joinNames, workspaceName } from "../files/workspace-name.ts";
import type { RefusedArtifacts } from "./refused-artifacts.ts";

/** Files that a command leaves here are kept without a glob. */
const directoryName = "artifacts";
/** Maximum number of files listed, before and after the command. */
const listedMost = 10_000;
const tooMany = `there are more than ${listedMost} files; not all were looked at`;

export interface WantedFiles {
  /** Relative to the workspace. Keeps matching files whether or not the command touched them. */
  readonly globs: readonly string[];
  /** The command's directory: files it changes in its `artifacts/` are kept. Undefined: not searched. */
  readonly cwd: string | undefined;
  /** Keeps what the command makes or changes anywhere in the workspace, except hidden files and build products. */
  readonly anywhere?: boolean | undefined;
}

/** A command that unpacks a source tree leaves thousands of files. */
const keptAnywhereMost = 32;
const remade: ReadonlySet<string> = new Set(["node_modules", "__pycache__", "target", "venv"]);

/**
 * Finds the files that a command leaves. Lists `artifacts/` before the command runs, because times do not distinguish old files from new
 * ones: a copied or unpacked file is often older than the job.
 */
export class ArtifactFiles {
  readonly #files: SandboxFiles;
  readonly #wanted: WantedFiles;
  #before: Listing<FileEntry> = { items: [], truncated: false };

  constructor(files: SandboxFiles, wanted: WantedFiles) {
    this.#files = files;
    this.#wanted = wanted;
  }

  async look(signal: AbortSignal): Promise<void> {
    this.#before = await this.#inDirectory(signal);
  }

  /** Regular files by path, each once. Refuses files that cannot be kept for their name or type. */
  async found(signal: AbortSignal, refused: RefusedArtifacts): Promise<FileEntry[]> {
    const entries = new Map<string, FileEntry>();
    for (const entry of await this.#named(signal, refused)) entries.set(entry.path, entry);
    for (const entry of await this.#changed(signal, refused)) entries.set(entry.path, entry);
    const files: FileEntry[] = [];
    for (const entry of [...entries.values()].sort((a, b) => (a.path < b.path ? -1 : 1))) {
      const problem = pathProblem(entry.path);
      if (entry.type === "directory") continue;
      if (entry.type !== "file") refused.add(entry.path, "not-a-file", "it is not a regular file");
      else if (problem) refused.add(entry.path, "unreadable", `invalid path: ${problem}`);
      else files.push(entry);
    }
    return files;
  }

  async #named(signal: AbortSignal, refused: RefusedArtifacts): Promise<readonly FileEntry[]> {
    const globs = this.#wanted.globs.map(withoutWorkspacePrefix);
    if (globs.length === 0) return [];
    const { items, truncated } = await this.#files.glob(globs, { maxItems: listedMost, signal });
    if (truncated) refused.add(globs.join(" "), "too-many", tooMany);
    return items;
  }

  async #changed(signal: AbortSignal, refused: RefusedArtifacts): Promise<readonly FileEntry[]> {
    const { items, truncated } = await this.#inDirectory(signal);
    if (this.#before.truncated || truncated)
      refused.add(this.#wanted.anywhere ? "." : directoryName, "too-many", tooMany);
    // Old files and new ones cannot be distinguished.
    if (this.#before.truncated) return [];
    const old = new Map(this.#before.items.map((entry) => [entry.path, stampOf(entry)]));
    const changed = items.filter((entry) => old.get(entry.path) !== stampOf(entry));
    return this.#wanted.anywhere
      ? fewest(changed, joinNames(workspaceName(this.#wanted.cwd ?? ""), directoryName), refused)
      : changed;
  }

  async #inDirectory(signal: AbortSignal): Promise<Listing<FileEntry>> {
    const { cwd } = this.#wanted;
    const none = { items: [], truncated: false };
    if (cwd === undefined) return none;
    const directory = this.#wanted.anywhere ? "" : joinNames(workspaceName(cwd), directoryName);
    try {
      return await this.#files.list(directory, { recursive: true, maxItems: listedMost, signal });
    } catch (error) {
      // Missing, not a directory, or a link that leads out: it holds nothing of the command's.
      if (error instanceof FileRefusal) return none;
      throw error;
    }
  }
}

/** Keeps all files in `artifacts/`, and only the first few of all others. */
function fewest(changed: readonly FileEntry[], directory: string, refused: RefusedArtifacts): FileEntry[] {
  const [meant, others]: [FileEntry[], FileEntry[]] = [[], []];
  for (const entry of changed) {
    if (entry.path.startsWith(`${directory}/`)) meant.push(entry);
    else if (entry.type === "file" && isOfInterest(entry.path)) others.push(entry);
  }
  const reason = `of files outside ${directory}/ at most ${keptAnywhereMost} are kept`;
  for (const { path } of others.slice(keptAnywhereMost)) refused.add(path, "too-many", reason);
  return [...meant, ...others.slice(0, keptAnywhereMost)];
}

function isOfInterest(path: string): boolean {
  return !path.split("/").some((name) => name.startsWith(".") || remade.has(name));
}

function stampOf({ type, size, modifiedMs }: FileEntry): string {
  return `${type} ${size} ${modifiedMs}`;
}
