import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { SandboxFiles } from "@berth/sandbox/port";

/** Read-ahead; beyond it the sandbox sends nothing (backpressure). */
const heldBytes = 256 * 1024;

/** Streams a file at the reader's pace. Reads nothing before the first chunk is requested, nor after the reader leaves. */
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
