import { type FileEntry, FileRefusal, maxInlineBytes, type ValueOf } from "@berth/protocol";
import { minTarBytes, packTar, type TarItem } from "@berth/tar";
import { workspaceName } from "../files/workspace-name.ts";
import { inPool } from "../in-pool.ts";
import { Refusal, type RequestOf, type RunContext } from "../run-context.ts";

const readsAtOnce = 8;
/** Each takes a block of 512 bytes, so that more could not fit. */
const maxEntries = maxInlineBytes / 512;

type OutRequest = Extract<RequestOf<"archive">, { direction: "out" }>;

/** Files, directories and symlinks; sockets and the like are left out, and so is what vanishes meanwhile. */
export async function runArchiveOut(request: OutRequest, context: RunContext): Promise<ValueOf<"archive">> {
  const entries = await wanted(request.paths, context);
  const stated = minTarBytes(entries.map(({ type, size }) => (type === "file" ? size : 0)));
  if (stated > maxInlineBytes) throw tooLarge(stated);
  const items = await withContent(entries, context);
  const archive = await packTar(items);
  if (archive.length > maxInlineBytes) throw tooLarge(archive.length);
  return {
    content: archive.toString("base64"),
    encoding: "base64",
    size: archive.length,
    count: items.length,
  };
}

/** By path, so that a directory comes before what is in it. */
async function wanted(paths: readonly string[], { sandbox, signal }: RunContext): Promise<FileEntry[]> {
  const { files } = sandbox;
  const entries = new Map<string, FileEntry>();
  const add = (entry: FileEntry) => {
    if (entry.path !== "" && entry.type !== "other") entries.set(entry.path, entry);
    if (entries.size > maxEntries) throw tooLarge(undefined);
  };
  for (const path of paths.map(workspaceName)) {
    const { sha256: _, ...entry } = await files.stat(path, { followLinks: false, signal });
    add({ ...entry, path });
    if (entry.type !== "directory") continue;
    const { items, truncated } = await files.list(path, {
      recursive: true,
      maxItems: maxEntries + 1,
      signal,
    });
    if (truncated) throw tooLarge(undefined);
    for (const item of items) add(item);
  }
  return [...entries.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

async function withContent(
  entries: readonly FileEntry[],
  { sandbox, signal }: RunContext,
): Promise<TarItem[]> {
  const items: (TarItem | undefined)[] = [];
  let roomBytes = maxInlineBytes;
  await inPool(readsAtOnce, async (add) => {
    for (const [index, entry] of entries.entries()) {
      if (entry.type !== "file") {
        items[index] = entry;
        continue;
      }
      await add(async () => {
        const bytes = await content(entry.path);
        if (bytes === undefined) return;
        // It may have grown since it was listed.
        roomBytes -= bytes.length;
        if (roomBytes < 0) throw tooLarge(undefined);
        items[index] = { ...entry, bytes };
      });
    }
  });
  return items.filter((item) => item !== undefined);

  async function content(path: string): Promise<Uint8Array | undefined> {
    try {
      const { bytes, size } = await sandbox.files.read(path, { length: maxInlineBytes, signal });
      if (size > maxInlineBytes) throw tooLarge(size);
      return bytes;
    } catch (error) {
      if (error instanceof FileRefusal && error.code === "not-found") return undefined;
      throw error;
    }
  }
}

function tooLarge(bytes: number | undefined): Refusal {
  const size = bytes === undefined ? "" : ` of ${bytes} bytes`;
  return new Refusal(
    "too-large",
    `the archive${size} is larger than the ${maxInlineBytes} bytes a result may carry; name fewer paths`,
  );
}
