import { posix } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import {
  FileRefusal,
  isSuccess,
  outputText,
  pathProblem,
  type ValueOf,
  workspaceDirectory,
} from "@berth/protocol";
import { readTar, type TarEntry, type TarType } from "@berth/tar";
import { ancestors, joinNames, workspaceName } from "../files/workspace-name.ts";
import { inPool } from "../in-pool.ts";
import { Refusal, type RequestOf, type RunContext, throwIfAborted } from "../run-context.ts";

const maxEntries = 100_000;
const maxUnpackedBytes = 4 * 1024 * 1024 * 1024;
const writesAtOnce = 8;
/** Smaller files are held in memory and written side by side; larger ones pass through, one at a time. */
const heldBytes = 256 * 1024;
const linksAtOnce = 100;

type InRequest = Extract<RequestOf<"archive">, { direction: "in" }>;

/** What the archive makes of one name. An archive may hold a name twice; the last one counts. */
interface Planned {
  readonly index: number;
  readonly type: TarType;
  readonly mode: number;
  /** Of a symlink as written, of a hard link from the workspace's root. */
  readonly target: string;
}

/** The archive is read twice: once to see that all of it is sound, then to write it. */
export async function runArchiveIn(request: InRequest, context: RunContext): Promise<ValueOf<"archive">> {
  const packed = Buffer.from(request.content, "base64");
  const base = workspaceName(request.path);
  const plan = await planned(packed, base, context.signal);
  const progress = { entries: 0, bytes: 0 };
  try {
    await makeDirectories(plan, context, progress);
    await writeFiles(packed, base, plan, context, progress);
    await makeLinks(plan, context, progress);
  } catch (error) {
    if (!(error instanceof FileRefusal)) throw error;
    throw new Refusal(
      error.code,
      `${error.message}; ${progress.entries} of the archive's ${plan.size} entries had been unpacked before`,
      { count: progress.entries },
    );
  }
  return { count: progress.entries, size: progress.bytes };
}

interface Progress {
  entries: number;
  bytes: number;
}

type Plan = ReadonlyMap<string, Planned>;

async function planned(packed: Buffer, base: string, signal: AbortSignal): Promise<Plan> {
  const plan = new Map<string, Planned>();
  let index = 0;
  for await (const entry of readTar(unzipped(packed), bad)) {
    throwIfAborted(signal, "archive");
    const path = entryPath(entry.path, base);
    if (path === "" || path === base) {
      if (entry.type !== "directory") throw bad(`an entry has no name`);
    } else {
      plan.set(path, { index, type: entry.type, mode: entry.mode, target: linkTarget(entry, path, base) });
    }
    index++;
    if (index > maxEntries) throw bad(`it has more than ${maxEntries} entries`);
  }
  for (const [path, { type, target }] of plan) {
    const above = ancestors(path).find((name) => (plan.get(name)?.type ?? "directory") !== "directory");
    if (above !== undefined) throw bad(`${path} is beneath ${above}, which is not a directory in it`);
    if (type === "hardlink" && plan.get(target)?.type !== "file") {
      throw bad(`${path} is a hard link to ${target}, which is not a file in it`);
    }
  }
  return plan;
}

function entryPath(path: string, base: string): string {
  const problem = path.startsWith("/") ? "it is absolute" : pathProblem(joinNames(base, path));
  if (problem) throw bad(`the path ${JSON.stringify(path)} is not allowed: ${problem}`);
  return joinNames(base, workspaceName(path));
}

/** A link that leads out of the workspace would be followed by nobody, and is a trap for whoever copies it out. */
function linkTarget({ type, path, target }: TarEntry, at: string, base: string): string {
  if (type === "hardlink") return entryPath(target, base);
  if (type !== "symlink") return "";
  const leads = posix.resolve(workspaceDirectory, posix.dirname(at), target);
  const inside = leads === workspaceDirectory || leads.startsWith(`${workspaceDirectory}/`);
  if (target === "" || target.includes("\0") || !inside) {
    throw bad(`${path} is a link that leads out of the workspace, to ${JSON.stringify(target)}`);
  }
  return target;
}

async function makeDirectories(
  plan: Plan,
  { sandbox, signal }: RunContext,
  progress: Progress,
): Promise<void> {
  const byDepth = Map.groupBy(
    [...plan].filter(([, { type }]) => type === "directory"),
    ([path]) => path.split("/").length,
  );
  // Level by level: a directory made as another's parent would have no mode of its own.
  for (const depth of [...byDepth.keys()].sort((a, b) => a - b)) {
    await inPool(writesAtOnce, async (add) => {
      for (const [path, { mode }] of byDepth.get(depth) ?? []) {
        await add(async () => {
          // Its owner must be able to fill it.
          await sandbox.files.makeDirectory(path, { mode: mode | 0o700, signal });
          progress.entries++;
        });
      }
    });
  }
}

async function writeFiles(
  packed: Buffer,
  base: string,
  plan: Plan,
  { sandbox, signal }: RunContext,
  progress: Progress,
): Promise<void> {
  let index = 0;
  await inPool(writesAtOnce, async (add) => {
    for await (const { type, path: name, size, mode, content } of readTar(unzipped(packed), bad)) {
      throwIfAborted(signal, "archive");
      const path = entryPath(name, base);
      if (plan.get(path)?.index !== index++ || type !== "file") continue;
      const write = async (source: Uint8Array | { size: number; chunks: AsyncIterable<Uint8Array> }) => {
        await sandbox.files.write(path, source, { mode, signal });
        progress.entries++;
        progress.bytes += size;
      };
      if (size > heldBytes) {
        await write({ size, chunks: content });
      } else {
        const held = await whole(content);
        await add(() => write(held));
      }
    }
  });
}

async function whole(content: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of content) parts.push(part);
  return Buffer.concat(parts);
}

/** File operations make no links. The paths are arguments, never part of the script. */
const linkScript = `
while [ $# -gt 0 ]; do
  if [ -d "$3" ] && [ ! -L "$3" ]; then echo "it is a directory: $3" >&2; exit 1; fi
  rm -f -- "$3" || exit 1
  if [ "$1" = symlink ]; then ln -s -- "$2" "$3" || exit 1; else ln -- "$2" "$3" || exit 1; fi
  shift 3
done`;

async function makeLinks(plan: Plan, context: RunContext, progress: Progress): Promise<void> {
  const { sandbox, signal, limits } = context;
  const links = [...plan].filter(([, { type }]) => type === "symlink" || type === "hardlink");
  const parents = new Set(links.map(([path]) => posix.dirname(path)).filter((parent) => parent !== "."));
  // Through file operations, which refuse a parent that leads out of the workspace.
  for (const parent of parents) await sandbox.files.makeDirectory(parent, { signal });
  for (let at = 0; at < links.length; at += linksAtOnce) {
    const some = links.slice(at, at + linksAtOnce);
    const args = some.flatMap(([path, { type, target }]) => [
      type,
      type === "symlink" ? target : `./${target}`,
      `./${path}`,
    ]);
    const result = await sandbox.exec({ argv: ["sh", "-c", linkScript, "sh", ...args], limits }, { signal });
    if (result.outcome.kind === "cancelled") throwIfAborted(signal, "archive");
    if (!isSuccess(result.outcome)) {
      const detail = outputText(result.output, "stderr").trim() || result.outcome.kind;
      throw new Refusal("archive-failed", `the archive's links could not be made: ${detail}`, {
        count: progress.entries,
      });
    }
    progress.entries += some.length;
  }
}

/** gzip is known by its first bytes. What unpacks to more than any workspace holds is stopped on the way. */
async function* unzipped(packed: Buffer): AsyncGenerator<Uint8Array, void, void> {
  if (packed[0] !== 0x1f || packed[1] !== 0x8b) {
    yield packed;
    return;
  }
  const gunzip = createGunzip();
  const piping = pipeline(Readable.from([packed]), gunzip);
  // Its error is thrown by the loop below too.
  piping.catch(() => {});
  let unpackedBytes = 0;
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      unpackedBytes += chunk.length;
      if (unpackedBytes > maxUnpackedBytes) throw bad(`it unpacks to more than ${maxUnpackedBytes} bytes`);
      yield chunk;
    }
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw bad(`its gzip data is damaged (${(error as Error).message})`);
  }
}

function bad(problem: string): Refusal {
  return new Refusal("bad-archive", `the archive cannot be unpacked: ${problem}`);
}
