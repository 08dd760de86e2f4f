import http from "node:http";

export interface EngineCall {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Ends the call when the worker that asked has gone. */
  readonly signal?: AbortSignal | undefined;
}

/** Longer than the workers' own deadlines. Bounds only the wait for the answer's start: a pull's answer takes minutes. */
const answerDeadlineMs = 300_000;

/** The engine behind the proxy. It gets only requests that the proxy wrote itself, never one as the worker sent it. */
export class Engine {
  readonly #socketPath: string;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  request({ method, target, body, headers = {}, signal }: EngineCall): http.ClientRequest {
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const request = http.request({
      socketPath: this.#socketPath,
      method,
      path: target,
      headers: {
        host: "engine",
        ...(bytes ? { "content-type": "application/json", "content-length": String(bytes.length) } : {}),
        ...headers,
      },
      agent: false,
      ...(signal ? { signal } : {}),
    });
    const late = setTimeout(
      () => request.destroy(new Error(`the engine did not answer within ${answerDeadlineMs} ms`)),
      answerDeadlineMs,
    );
    for (const answered of ["response", "upgrade", "close"]) request.once(answered, () => clearTimeout(late));
    request.end(bytes);
    return request;
  }

  answer(call: EngineCall): Promise<http.IncomingMessage> {
    return new Promise((resolve, reject) => {
      this.request(call).on("response", resolve).on("error", reject);
    });
  }

  /** Parses the body of an answer with status 200; undefined for any other status. */
  async value(target: string, signal?: AbortSignal): Promise<unknown> {
    const response = await this.answer({ method: "GET", target, signal });
    const text = await textOf(response);
    return response.statusCode === 200 ? JSON.parse(text) : undefined;
  }
}

/** Throws a RangeError if the stream has more than `maxBytes`. */
export async function textOf(
  stream: AsyncIterable<Buffer>,
  maxBytes = Number.POSITIVE_INFINITY,
): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.length;
    if (size > maxBytes) throw new RangeError(`more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
