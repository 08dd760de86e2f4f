import { type FileEntry, FileRefusal, pathProblem, withoutWorkspacePrefix } from "@berth/protocol";
import type { Listing, SandboxFiles } from "@berth/sandbox/port";
import { joinNames, workspaceName } from "../files/workspace-name.ts";
import type { RefusedArtifacts } from "./refused-artifacts.ts";

/** What a command leaves here is kept without being named. */
const directoryName = "artifacts";
/** Names that are looked at, before and after. */
const listedMost = 10_000;
const tooMany = `there are more than ${listedMost} files; not all were looked at`;

export interface WantedFiles {
  /** Relative to the workspace. Files that match are kept whether or not the command touched them. */
  readonly globs: readonly string[];
  /** Where the command runs: what it changes in `artifacts/` there is kept. Undefined: not looked at. */
  readonly cwd: string | undefined;
  /** What it makes or changes anywhere in the workspace is kept, but for hidden files and what others can make again. */
  readonly anywhere?: boolean | undefined;
}

/** A command that unpacks a source tree leaves thousands. */
const keptAnywhereMost = 32;
const remade: ReadonlySet<string> = new Set(["node_modules", "__pycache__", "target", "venv"]);

/**
 * Which files a command leaves. Looks at `artifacts/` before it runs, so that afterwards its own are known from older ones
 * whatever time they bear: a copied or unpacked file is often older than the job.
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

  /** Regular files by path, each once. What cannot be kept for its name or type is refused here. */
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
    // Old files cannot be distinguished from new ones.
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
      // Not there, not a directory, or a link that leads out: then nothing of the command's is in it.
      if (error instanceof FileRefusal) return none;
      throw error;
    }
  }
}

/** What is in `artifacts/` was put there to be kept; of all others only so many are. */
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
