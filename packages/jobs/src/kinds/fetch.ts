import { createHash, randomUUID } from "node:crypto";
import { posix } from "node:path";
import { BoundedWait, type ValueOf } from "@berth/protocol";
import { workspaceName } from "../files/workspace-name.ts";
import { Refusal, type RequestOf, type RunContext, throwIfAborted } from "../run-context.ts";

/** Maximum of a body in memory. */
const partBytes = 1024 * 1024;

/** Sends a GET within the sandbox's egress rules. Throws `Refusal`. */
export type DownloadPort = (
  url: string,
  signal: AbortSignal,
) => Promise<{
  /** The URL after redirects. */
  readonly url: string;
  readonly status: number;
  readonly type: string | undefined;
  readonly redirects: number;
  readonly size: number | undefined;
  readonly chunks: AsyncIterable<Uint8Array>;
}>;

/** The file appears when complete: until then its bytes are in a temporary file beside it. */
export async function runFetch(request: RequestOf<"fetch">, context: RunContext): Promise<ValueOf<"fetch">> {
  const { download, signal } = context;
  if (!download) throw new Refusal("egress-denied", "this worker fetches nothing");
  const { url, path, timeoutMs } = request;
  using wait = new BoundedWait().endWith(signal).endAfter(timeoutMs);
  const part = posix.join(posix.dirname(workspaceName(path)), `.fetch-${randomUUID()}`);
  try {
    const answer = await download(url, wait.signal);
    if (answer.status < 200 || answer.status > 299)
      throw new Refusal("fetch-failed", `${answer.url} answered with status ${answer.status}`, {
        status: answer.status,
      });
    if ((answer.size ?? 0) > request.maxBytes) throw tooLarge(request);
    const written = await store(answer.chunks, part, request, { ...context, signal: wait.signal });
    if (request.sha256 !== undefined && request.sha256 !== written.sha256)
      throw new Refusal("mismatch", `${url} has the sha256 ${written.sha256}, not ${request.sha256}`);
    await context.sandbox.files.move(part, path, { overwrite: true, signal });
    const { type, redirects, status } = answer;
    return { ...written, url: answer.url, status, redirects, ...(type === undefined ? {} : { type }) };
  } catch (error) {
    await context.sandbox.files.remove(part, { missingOk: true }).catch(() => {});
    throwIfAborted(signal, "fetch");
    if (wait.isLate) throw new Refusal("fetch-failed", `${url} was not fetched within ${timeoutMs} ms`);
    throw error;
  }
}

async function store(
  chunks: AsyncIterable<Uint8Array>,
  part: string,
  request: RequestOf<"fetch">,
  { sandbox, signal }: RunContext,
): Promise<{ size: number; sha256: string }> {
  const hash = createHash("sha256");
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  let size = 0;
  const flush = async (append: boolean) => {
    await sandbox.files.write(part, Buffer.concat(held), { append, signal });
    held = [];
    heldBytes = 0;
  };
  await flush(false);
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > request.maxBytes) throw tooLarge(request);
    hash.update(chunk);
    held.push(chunk);
    heldBytes += chunk.length;
    if (heldBytes >= partBytes) await flush(true);
  }
  if (heldBytes > 0) await flush(true);
  return { size, sha256: hash.digest("hex") };
}

function tooLarge({ url, maxBytes }: RequestOf<"fetch">): Refusal {
  return new Refusal("fetch-failed", `${url} is larger than ${maxBytes} bytes; allow more with maxBytes`);
}
