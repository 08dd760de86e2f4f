import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { SandboxFiles } from "@berth/sandbox/port";

/** How much may wait for its reader; the sandbox sends no more meanwhile. */
const heldBytes = 256 * 1024;

/** A file's bytes, at the reader's pace. Nothing is read before the first is asked for, nor after the reader leaves. */
export async function* fileChunks(
  files: SandboxFiles,
  path: string,
  { maxBytes, signal }: { readonly maxBytes: number; readonly signal: AbortSignal },
): AsyncGenerator<Uint8Array, void, void> {
  const left = new AbortController();
  const waiting = new PassThrough({ highWaterMark: heldBytes });
  const reading = files
    .read(path, {
      length: maxBytes,
      signal: AbortSignal.any([signal, left.signal]),
      onData: async (bytes) => {
        if (!waiting.write(bytes)) await once(waiting, "drain", { signal: left.signal });
      },
    })
    .then(
      () => void waiting.end(),
      (error: Error) => void waiting.destroy(error),
    );
  try {
    yield* waiting;
  } finally {
    left.abort();
    await reading;
  }
}
