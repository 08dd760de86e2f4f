import { BadTarget, download, EgressDenied, type EgressGate } from "@berth/egress";
import { type DownloadPort, Refusal } from "@berth/jobs";

/** Downloads through a sandbox's gate. A refusal of the gate becomes a refusal of the job. */
export function fetchingBy(gate: EgressGate): DownloadPort {
  return async (url, signal) => {
    const answer = await translated(download(gate, url, signal));
    return { ...answer, chunks: translatedChunks(answer.chunks) };
  };
}

async function* translatedChunks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  const reading = chunks[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await translated(reading.next());
      if (done) return;
      yield value;
    }
  } finally {
    await reading.return?.();
  }
}

async function translated<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof BadTarget) throw new Refusal("egress-denied", error.message);
    if (error instanceof EgressDenied) {
      const code = error.why === "unreachable" ? "fetch-failed" : "egress-denied";
      throw new Refusal(code, error.message);
    }
    throw error;
  }
}
