import { isFault, type JobValue, maxInlineBytes } from "@berth/protocol";
import { LineWindow } from "./line-window.ts";
import { Refusal, type RequestOf, type RunContext } from "./run-context.ts";

/** Most files that agents read are smaller, and are then read in one go. */
const firstRangeBytes = 256 * 1024;

export async function runRead(request: RequestOf<"read">, context: RunContext): Promise<JobValue> {
  return request.as === "bytes" ? readBytes(request, context) : readText(request, context);
}

async function readBytes(
  { path, offset, bytes: length }: RequestOf<"read">,
  { sandbox, signal }: RunContext,
): Promise<JobValue> {
  const { bytes, size, sha256 } = await sandbox.files.read(path, { offset, length, signal });
  const whole = offset === 0 && bytes.length === size;
  return {
    content: Buffer.from(bytes).toString("base64"),
    encoding: "base64",
    size,
    truncated: offset + bytes.length < size,
    ...(whole ? { sha256 } : {}),
  };
}

async function readText(request: RequestOf<"read">, context: RunContext): Promise<JobValue> {
  const { path } = request;
  const { files } = context.sandbox;
  const { bytes, size, sha256 } = await files.read(path, { length: firstRangeBytes, signal: context.signal });
  let window = newWindow(request);
  window.add(bytes);
  const whole = bytes.length === size;
  // From the start again, in one stream: what is read in two goes could be halves of two different files.
  if (!whole && !window.full) window = await streamedWindow(request, context);
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
  };
}

function newWindow({ line, lines }: RequestOf<"read">): LineWindow {
  return new LineWindow(line, lines, maxInlineBytes);
}

/** Reads until the lines asked for are there, and not to the file's end. */
async function streamedWindow(request: RequestOf<"read">, context: RunContext): Promise<LineWindow> {
  const window = newWindow(request);
  const enough = new AbortController();
  try {
    await context.sandbox.files.read(request.path, {
      signal: AbortSignal.any([context.signal, enough.signal]),
      onData: (bytes) => {
        window.add(bytes);
        if (window.full && window.more) enough.abort();
      },
    });
  } catch (error) {
    if (!enough.signal.aborted || context.signal.aborted || !isFault(error, "aborted")) throw error;
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
