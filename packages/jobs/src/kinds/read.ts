import { isFault, maxInlineBytes, sharedPath, type ValueOf } from "@berth/protocol";
import { type ReadSource, readPersisted } from "../artifacts/read-persisted.ts";
import { workspaceName } from "../files/workspace-name.ts";
import { Refusal, type RequestOf, type RunContext } from "../run-context.ts";
import { LineWindow } from "../text/line-window.ts";

/** Most files that agents read are smaller, and are read with one request. */
const firstRangeBytes = 256 * 1024;

/** Reads an artifact by id, or a file. A persisted file of the conversation comes before the workspace's; the result is marked. */
export async function runRead(request: RequestOf<"read">, context: RunContext): Promise<ValueOf<"read">> {
  const { sandbox, artifacts, signal } = context;
  const { artifact } = request;
  const isShared = sharedPath(request.path) !== undefined;
  const persisted = await (artifact === undefined
    ? isShared
      ? undefined
      : artifacts?.persisted(workspaceName(request.path))
    : artifacts?.artifact(artifact));
  if (artifact !== undefined && !persisted)
    throw new Refusal("not-found", `there is no artifact ${artifact} of this tenant, or it has expired`);
  const read: ReadSource = persisted
    ? (options) => readPersisted(persisted, options)
    : (options) => sandbox.files.read(request.path, options);
  const value = await (request.as === "bytes"
    ? readBytes(request, read, signal)
    : readText(request, read, signal));
  return persisted ? { ...value, persisted: [persisted.ref] } : value;
}

async function readBytes(
  { offset, bytes: length }: RequestOf<"read">,
  read: ReadSource,
  signal: AbortSignal,
): Promise<ValueOf<"read">> {
  const { bytes, size, sha256, scrubbed } = await read({ offset, length, signal });
  const whole = offset === 0 && bytes.length === size;
  return {
    content: Buffer.from(bytes).toString("base64"),
    encoding: "base64",
    size,
    truncated: offset + bytes.length < size,
    ...(whole ? { sha256 } : {}),
    ...(scrubbed === undefined ? {} : { scrubbed }),
  };
}

async function readText(
  request: RequestOf<"read">,
  read: ReadSource,
  signal: AbortSignal,
): Promise<ValueOf<"read">> {
  const { path } = request;
  const { bytes, size, sha256, scrubbed } = await read({ length: firstRangeBytes, signal });
  let window = newWindow(request);
  window.add(bytes);
  const whole = bytes.length === size;
  // Start again, in one stream: two reads could return halves of two different files.
  if (!whole && !window.full) window = await streamedWindow(request, read, signal);
  const text = window.finish({ atEnd: window.seenBytes >= size });
  if (window.tooLongLine !== undefined) {
    throw new Refusal(
      "too-large",
      `line ${window.tooLongLine} of ${path} has more than ${maxInlineBytes} bytes; read a range of it as bytes`,
    );
  }
  return {
    content: decoded(text, path),
    encoding: "utf8",
    size,
    lines: { first: window.first, last: window.last, more: window.more },
    ...(whole ? { sha256 } : {}),
    ...(scrubbed === undefined ? {} : { scrubbed }),
  };
}

function newWindow({ line, lines }: RequestOf<"read">): LineWindow {
  return new LineWindow(line, lines, maxInlineBytes);
}

/** Reads until it has the requested lines, not to the file's end. */
async function streamedWindow(
  request: RequestOf<"read">,
  read: ReadSource,
  signal: AbortSignal,
): Promise<LineWindow> {
  const window = newWindow(request);
  const enough = new AbortController();
  try {
    await read({
      signal: AbortSignal.any([signal, enough.signal]),
      onData: (bytes) => {
        window.add(bytes);
        if (window.full && window.more) enough.abort();
      },
    });
  } catch (error) {
    if (!enough.signal.aborted || signal.aborted || !isFault(error, "aborted")) throw error;
  }
  return window;
}

function decoded(text: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text);
  } catch {
    throw new Refusal("not-text", `${path} is not UTF-8 text; read it as bytes`);
  }
}
