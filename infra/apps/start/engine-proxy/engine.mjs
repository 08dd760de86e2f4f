import http from "node:http";

/** The engine behind the proxy. Each request is made anew: nothing of what the worker sent is passed on as it came. */
export class Engine {
  /** @param {string} socketPath */
  constructor(socketPath) {
    this.socketPath = socketPath;
  }

  /**
   * @param {string} method
   * @param {string} target path and query
   * @param {unknown} [body] sent as JSON
   * @param {Record<string, string>} [more] headers
   */
  request(method, target, body, more = {}) {
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const headers = {
      host: "engine",
      ...(bytes ? { "content-type": "application/json", "content-length": String(bytes.length) } : {}),
      ...more,
    };
    const request = http.request({
      socketPath: this.socketPath,
      method,
      path: target,
      headers,
      agent: false,
    });
    request.end(bytes);
    return request;
  }

  /**
   * @param {string} method
   * @param {string} target
   * @param {unknown} [body]
   * @returns {Promise<http.IncomingMessage>}
   */
  answer(method, target, body) {
    return new Promise((resolve, reject) => {
      this.request(method, target, body).on("response", resolve).on("error", reject);
    });
  }

  /** The value of an answer of 200, or undefined. */
  async value(target) {
    const response = await this.answer("GET", target);
    const text = await textOf(response);
    return response.statusCode === 200 ? JSON.parse(text) : undefined;
  }
}

/** @param {AsyncIterable<Buffer>} stream */
export async function textOf(stream, mostBytes = Number.POSITIVE_INFINITY) {
  const chunks = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.length;
    if (size > mostBytes) throw new RangeError(`more than ${mostBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
