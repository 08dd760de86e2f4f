import { createHash } from "node:crypto";
import type { JobSandbox } from "@berth/jobs";
import type { FileEntry } from "@berth/protocol";
import type { FileContent, Listing, ReadEntry, ReadOptions, SandboxFiles } from "@berth/sandbox";
import type { Outlet } from "./outlet.ts";
import type { Values } from "./tenant-secrets.ts";

/** The sandbox for one job: its commands get the variables, and everything read from it goes through the outlet. */
export function scrubbedSandbox(sandbox: JobSandbox, outlet: Outlet, env: Values): JobSandbox {
  return {
    files: scrubbedFiles(sandbox.files, outlet),
    exec: (request, options) => sandbox.exec(request, { ...options, env, filter: outlet.filter() }),
  };
}

function scrubbedFiles(files: SandboxFiles, outlet: Outlet): SandboxFiles {
  const entry = <T extends FileEntry>(one: T): T => ({
    ...one,
    path: outlet.text(one.path),
    ...(one.target === undefined ? {} : { target: outlet.text(one.target) }),
  });
  const entries = ({ items, ...rest }: Listing<FileEntry>) => ({ ...rest, items: items.map(entry) });
  return {
    read: (path, options) =>
      options?.unmasked ? files.read(path, options) : read(files, path, outlet, options),
    write: (path, content, options) => files.write(path, content, options),
    readMany: async (paths, options) => {
      const { entries: found, ...rest } = await files.readMany(paths, options);
      return { ...rest, entries: found.map((one) => scrubbedEntry(entry(one), outlet)) };
    },
    writeMany: (many, options) => files.writeMany(many, options),
    unpack: (archive, options) => files.unpack(archive, options),
    stat: async (path, options) => {
      const found = await files.stat(path, options);
      return { ...entry(found), path: found.path };
    },
    list: async (path, options) => entries(await files.list(path, options)),
    remove: (path, options) => files.remove(path, options),
    move: (from, to, options) => files.move(from, to, options),
    makeDirectory: (path, options) => files.makeDirectory(path, options),
    glob: async (patterns, options) => entries(await files.glob(patterns, options)),
    grep: async (pattern, options) => {
      const { items, ...rest } = await files.grep(pattern, options);
      const shown = items.map((match) => ({
        ...match,
        path: outlet.text(match.path),
        text: outlet.text(match.text),
      }));
      return { ...rest, items: shown };
    },
  };
}

/** Masks in place: only the caller has the buffer. */
function scrubbedEntry(entry: ReadEntry, outlet: Outlet): ReadEntry {
  const { bytes } = entry;
  if (bytes) outlet.bytes(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
  return entry;
}

/** Reads some bytes on both sides of the range too, because a range may begin or end within a secret. */
async function read(
  files: SandboxFiles,
  path: string,
  outlet: Outlet,
  options: ReadOptions = {},
): Promise<FileContent> {
  const { offset = 0, length, onData } = options;
  const before = Math.min(offset, outlet.contextBytes);
  const range = {
    ...options,
    offset: offset - before,
    ...(length === undefined ? {} : { length: before + length + outlet.contextBytes }),
  };
  if (onData) return await readStream(files, path, outlet, { ...range, onData }, { before, length });
  const found = await files.read(path, range);
  const bytes = Buffer.from(found.bytes.buffer, found.bytes.byteOffset, found.bytes.length);
  const scrubbed = outlet.bytes(bytes);
  const asked = bytes.subarray(before, length === undefined ? undefined : before + length);
  return { ...found, ...partOf(found, asked), bytes: asked, ...(scrubbed === 0 ? {} : { scrubbed }) };
}

/** The hash of a whole file stays that of its unmasked bytes, for `ifMatch`. A part's is that of its masked bytes. */
function partOf(found: FileContent, asked: Buffer): { readonly sha256?: string } {
  if (asked.length === found.size) return {};
  return { sha256: createHash("sha256").update(asked).digest("hex") };
}

async function readStream(
  files: SandboxFiles,
  path: string,
  outlet: Outlet,
  options: ReadOptions & Required<Pick<ReadOptions, "onData">>,
  {
    before,
    length = Number.POSITIVE_INFINITY,
  }: { readonly before: number; readonly length: number | undefined },
): Promise<FileContent> {
  const stream = outlet.stream();
  let skip = before;
  let room = length;
  const pass = async (pieces: readonly Buffer[]) => {
    for (const piece of pieces) await passOne(piece);
  };
  const passOne = async (leaving: Buffer) => {
    const asked = leaving.subarray(skip, skip + room);
    skip -= Math.min(skip, leaving.length);
    room -= asked.length;
    if (asked.length > 0) await options.onData(asked);
  };
  const found = await files.read(path, {
    ...options,
    onData: (bytes) => pass(stream.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length))),
  });
  await pass([stream.end()]);
  return found;
}
