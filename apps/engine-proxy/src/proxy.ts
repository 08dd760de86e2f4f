import http, { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { ContainerRules } from "@berth/sandbox/container";
import { CallRewriter } from "./call-rewriter.ts";
import { type Known, knownCall, knownStream } from "./calls.ts";
import { type Engine, textOf } from "./engine.ts";
import { Refusal } from "./refusal.ts";

const maxBodyBytes = 1024 * 1024;
/** For the body of a request for a stream, which the server's own `requestTimeout` does not cover. */
const bodyDeadlineMs = 30_000;
const rawStream = "application/vnd.docker.raw-stream";

/** A call that the proxy refused with 403. */
export interface Refused {
  readonly method: string;
  readonly path: string;
  readonly why: string;
}

/**
 * Stands between workers and the engine's socket: a worker that was taken over can make sandboxes and touch those of its
 * fleet, and nothing more. No mount of the host, no privileges, no other container, no other call.
 *
 * Promises: the proxy writes every request anew from the parts that it understood; it joins two connections only after the
 * engine has turned its own into a stream, so nothing that looks like a request travels inside one. Does not promise that an
 * image is harmless, or that the kernel is.
 */
export class EngineProxy {
  readonly #engine: Engine;
  readonly #rewriter: CallRewriter;
  readonly #onRefused: (refused: Refused) => void;
  readonly #server = http.createServer({ headersTimeout: 10_000, requestTimeout: 30_000 });

  constructor(engine: Engine, rules: ContainerRules, onRefused: (refused: Refused) => void) {
    this.#engine = engine;
    this.#rewriter = new CallRewriter(engine, rules);
    this.#onRefused = onRefused;
    this.#server.on("request", (request, response) => void this.#answer(request, response));
    this.#server.on("upgrade", (request, socket, head) => void this.#join(request, socket, head));
  }

  listen(socketPath: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject).listen(socketPath, resolve);
    });
  }

  async #answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    try {
      const { path, query } = targetOf(request);
      const known = knownCall(request.method ?? "", path);
      if (!known) throw new Refusal(403, "not a call that workers make");
      const rewritten = await this.#rewriter.forCall(known, query, await bodyOf(request));
      if ("value" in rewritten) {
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(rewritten.value));
        return;
      }
      // The engine finishes what it has begun to make or remove, whether or not a client waits for it.
      const signal = rewritten.method === "GET" || known.call === "pull" ? gone.signal : undefined;
      const answer = await this.#engine.answer({ ...rewritten, signal });
      const type = answer.headers["content-type"];
      response.writeHead(answer.statusCode ?? 502, type ? { "content-type": type } : {});
      response.on("close", () => answer.destroy());
      answer.on("error", () => response.destroy());
      answer.pipe(response);
    } catch (error) {
      const { status, text } = this.#refusal(request, error);
      if (response.headersSent) response.destroy();
      else response.writeHead(status, { "content-type": "application/json" }).end(text);
    }
  }

  async #join(request: http.IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on("error", () => socket.destroy());
    try {
      const known = knownStream(request.method ?? "", targetOf(request).path);
      if (!known) throw new Refusal(403, "not a stream that workers open");
      const early = await skipBody(request, socket, head);
      const { stream, first, type } = await this.#streamFor(known, socket);
      stream.on("error", () => socket.destroy());
      stream.on("close", () => socket.destroy());
      socket.on("close", () => stream.destroy());
      socket.write(
        `HTTP/1.1 101 UPGRADED\r\nContent-Type: ${type}\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n`,
      );
      if (first.length > 0) socket.write(first);
      if (early.length > 0) stream.write(early);
      socket.pipe(stream);
      stream.pipe(socket);
    } catch (error) {
      const { status, text } = this.#refusal(request, error);
      const lines = [
        `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
        "content-type: application/json",
        `content-length: ${Buffer.byteLength(text)}`,
        "connection: close",
      ];
      socket.end([...lines, "", text].join("\r\n"));
    }
  }

  /** Waits until the engine has turned its connection into a stream. */
  async #streamFor(
    { id }: Known<"attach">,
    socket: Duplex,
  ): Promise<{ readonly stream: Duplex; readonly first: Buffer; readonly type: string }> {
    const call = await this.#rewriter.forAttach(id);
    const upgrade = this.#engine.request({ ...call, headers: { connection: "Upgrade", upgrade: "tcp" } });
    socket.once("close", () => upgrade.destroy());
    return new Promise((resolve, reject) => {
      upgrade.on("error", reject);
      upgrade.on("upgrade", (answer, stream, first) =>
        resolve({ stream, first, type: answer.headers["content-type"] ?? rawStream }),
      );
      upgrade.on("response", (answer) => {
        textOf(answer, maxBodyBytes).then(
          (text) => reject(new Refusal(answer.statusCode ?? 502, messageIn(text))),
          reject,
        );
      });
    });
  }

  #refusal(
    request: http.IncomingMessage,
    error: unknown,
  ): { readonly status: number; readonly text: string } {
    const status = error instanceof Refusal ? error.status : 502;
    const why = error instanceof Error ? error.message : String(error);
    if (status === 403) this.#onRefused({ method: request.method ?? "", path: targetOf(request).path, why });
    return { status, text: JSON.stringify({ message: why }) };
  }
}

function targetOf({ url = "" }: http.IncomingMessage): {
  readonly path: string;
  readonly query: URLSearchParams;
} {
  const at = url.indexOf("?");
  return {
    path: at < 0 ? url : url.slice(0, at),
    query: new URLSearchParams(at < 0 ? "" : url.slice(at + 1)),
  };
}

async function bodyOf(request: http.IncomingMessage): Promise<string> {
  try {
    return await textOf(request, maxBodyBytes);
  } catch (error) {
    throw error instanceof RangeError ? new Refusal(413, error.message) : error;
  }
}

/** Reads and drops the request's body, which adds nothing to the path. Returns the first bytes after it. */
async function skipBody(request: http.IncomingMessage, socket: Duplex, head: Buffer): Promise<Buffer> {
  const length = Number(request.headers["content-length"] ?? 0);
  if (request.headers["transfer-encoding"] || !(length >= 0 && length <= maxBodyBytes))
    throw new Refusal(400, "a request for a stream has a short body of known length, or none");
  const chunks = [head];
  let seen = head.length;
  const late = setTimeout(() => socket.destroy(), bodyDeadlineMs);
  try {
    if (seen < length)
      for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
        chunks.push(chunk);
        seen += chunk.length;
        if (seen >= length) break;
      }
  } finally {
    clearTimeout(late);
  }
  if (seen < length) throw new Refusal(400, `the body ended after ${seen} of ${length} bytes`);
  return Buffer.concat(chunks).subarray(length);
}

function messageIn(text: string): string {
  try {
    return JSON.parse(text).message ?? text;
  } catch {
    return text;
  }
}
