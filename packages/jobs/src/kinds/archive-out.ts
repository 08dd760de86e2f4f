import { type FileEntry, maxInlineBytes, type ValueOf } from "@berth/protocol";
import type { ReadEntry } from "@berth/sandbox/port";
import { minTarBytes, packTar } from "@berth/tar";
import { ancestors, workspaceName } from "../files/workspace-name.ts";
import { Refusal, type RequestOf, type RunContext } from "../run-context.ts";

/** Each entry takes at least a block of 512 bytes, so more cannot fit. */
const maxEntries = maxInlineBytes / 512;

type OutRequest = Extract<RequestOf<"archive">, { direction: "out" }>;

/** Files, directories and symlinks. Skips sockets and the like, and files that vanish meanwhile. */
export async function runArchiveOut(request: OutRequest, context: RunContext): Promise<ValueOf<"archive">> {
  const items = await wanted(request.paths.map(workspaceName), context);
  const stated = minTarBytes(items.map(({ bytes }) => bytes?.length ?? 0));
  if (stated > maxInlineBytes) throw tooLarge(stated);
  const archive = await packTar(items);
  if (archive.length > maxInlineBytes) throw tooLarge(archive.length);
  return {
    content: archive.toString("base64"),
    encoding: "base64",
    size: archive.length,
    count: items.length,
  };
}

/** By path, so that a directory comes before its content. An entry that is named twice appears once. */
async function wanted(paths: readonly string[], { sandbox, signal }: RunContext): Promise<ReadEntry[]> {
  const { entries, refused, truncated } = await sandbox.files.readMany(outermost(paths), {
    recursive: true,
    maxBytes: maxInlineBytes,
    maxItems: maxEntries + 1,
    signal,
  });
  const named = new Set(paths);
  for (const { path, refusal } of refused) {
    if (refusal.code === "too-large") throw tooLarge(undefined);
    if (refusal.code !== "not-found" || named.has(path)) throw refusal;
  }
  if (truncated || entries.length > maxEntries) throw tooLarge(undefined);
  return entries.filter(({ path, type }: FileEntry) => path !== "" && type !== "other");
}

function outermost(paths: readonly string[]): string[] {
  const named = new Set(paths);
  if (named.has("")) return [""];
  return [...named].filter((path) => !ancestors(path).some((above) => named.has(above)));
}

function tooLarge(bytes: number | undefined): Refusal {
  const size = bytes === undefined ? "" : ` of ${bytes} bytes`;
  return new Refusal(
    "too-large",
    `the archive${size} is larger than the ${maxInlineBytes} bytes a result may carry; name fewer paths`,
  );
}
