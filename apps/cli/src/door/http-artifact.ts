import { type HttpCalls, path } from "./http-call.ts";

/** Most connections in a row that may break before their first byte. */
const mostFailures = 20;

/** An artifact's bytes. Resumes a broken connection after the last byte: an artifact never changes. */
export async function httpArtifact(
  calls: HttpCalls,
  { id, tenant }: { readonly id: string; readonly tenant?: string | undefined },
): Promise<AsyncIterable<Uint8Array>> {
  const from = (offset: number) =>
    calls.response("GET", path`/v1/artifacts/${id}`, {
      query: { tenant },
      headers: offset === 0 ? {} : { range: `bytes=${offset}-` },
    });
  return bytesOf(calls, await from(0), from);
}

async function* bytesOf(
  calls: HttpCalls,
  first: Response,
  from: (offset: number) => Promise<Response>,
): AsyncGenerator<Uint8Array> {
  const total = Number(first.headers.get("content-length") ?? Number.NaN);
  let offset = 0;
  let failures = 0;
  for (let response = first; ; response = await from(offset)) {
    try {
      for await (const chunk of response.body ?? []) {
        offset += chunk.length;
        failures = 0;
        yield chunk;
      }
      return;
    } catch (error) {
      if (offset === total) return;
      if (calls.closed || ++failures > mostFailures) throw error;
    }
  }
}
