import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { BlockReader } from "./block-reader.ts";
import { EgressDenied, type EgressGate } from "./gate.ts";
import { pump } from "./pump.ts";
import { keptHeaders, passBody, passHead, plainLength } from "./site-answer.ts";
import { SiteStream } from "./site-stream.ts";
import { BadTarget, readAbsolute, readAuthority, shownTarget, type Target } from "./target.ts";

const maxHeadBytes = 16 * 1024;
/** Time limit for a request's head. */
const defaultHeadMs = 10_000;
/** Time limit for the server's head, after the last byte sent. */
const answerMs = 120_000;
/** Idle timeout of a connection. */
const idleMs = 300_000;

/**
 * The HTTP proxy of one sandbox: CONNECT, and plain HTTP in absolute form, one request per connection. The gate checks every request,
 * so a redirect that the program follows is checked too. A CONNECT tunnel leads to the one address that was checked. Requests are parsed
 * strictly and written anew; no other byte of them is passed on.
 */
export class EgressProxy {
  readonly #gate: EgressGate;
  readonly #server: Server;
  readonly #headMs: number;
  readonly #ending = new AbortController();
  readonly #heads = new WeakMap<Duplex, NodeJS.Timeout>();
  readonly #open = new Set<Duplex>();

  constructor(gate: EgressGate, { headMs = defaultHeadMs }: { readonly headMs?: number } = {}) {
    this.#gate = gate;
    this.#headMs = headMs;
    this.#server = createServer({
      maxHeaderSize: maxHeadBytes,
      insecureHTTPParser: false,
      requestTimeout: 0,
      headersTimeout: 0,
      keepAlive: false,
    });
    this.#server.maxRequestsPerSocket = 1;
    this.#server.timeout = idleMs;
    this.#server.on("request", (request, response) => void this.#plain(request, response));
    this.#server.on("connect", (request, socket, head) => void this.#tunnel(request, socket, head));
    this.#server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
      const status = error.code === "HPE_HEADER_OVERFLOW" ? 431 : 400;
      refuse(
        socket,
        status,
        "the request is not sound HTTP",
        `The proxy refuses this request: ${error.message}.`,
      );
    });
  }

  /** A connection from inside the sandbox. */
  accept(socket: Socket): void {
    socket.on("error", () => {});
    const leave = this.#ending.signal.aborted ? undefined : this.#gate.allowance.enter();
    if (!leave) {
      const message = "This sandbox has as many connections open as it may (limits.egressConnections).";
      refuse(socket, 429, "too many connections", message);
      return;
    }
    this.#open.add(socket);
    const head = () => refuse(socket, 408, "no request", `No whole request came within ${this.#headMs} ms.`);
    this.#heads.set(socket, setTimeout(head, this.#headMs));
    socket.once("close", () => {
      this.#headIsHere(socket);
      this.#open.delete(socket);
      leave();
    });
    this.#server.emit("connection", socket);
  }

  /** Closes every connection. Idempotent. */
  stop(): void {
    this.#ending.abort();
    for (const socket of this.#open) socket.destroy();
    this.#gate.meter.flush();
  }

  #headIsHere(socket: Duplex): void {
    clearTimeout(this.#heads.get(socket));
  }

  async #tunnel(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    this.#headIsHere(socket);
    let outside: Socket | undefined;
    try {
      const target = readAuthority(request.url ?? "");
      const reader = new BlockReader();
      outside = await this.#gate.connect(target, this.#ending.signal, reader.onread);
      outside.setTimeout(idleMs, () => outside?.destroy());
      if (socket.destroyed) {
        outside.destroy();
        return;
      }
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      if (head.length > 0) socket.unshift(head);
      pump(socket, outside, (sentBytes) => this.#gate.count(target, { sentBytes }));
      reader.pump(outside, socket, (receivedBytes) => this.#gate.count(target, { receivedBytes }));
    } catch (error) {
      outside?.destroy();
      const { status, short, message } = answerTo(error);
      refuse(socket, status, short, message);
    }
  }

  async #plain(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#headIsHere(request.socket);
    let outside: Socket | undefined;
    try {
      const { target, path } = readAbsolute(request.url ?? "");
      const reader = new BlockReader();
      outside = await this.#gate.connect(target, this.#ending.signal, reader.onread);
      if (request.socket.destroyed) {
        outside.destroy();
        return;
      }
      const site = new SiteStream(outside, reader, maxHeadBytes);
      this.#forward({ target, path, outside, site, request, response });
    } catch (error) {
      outside?.destroy();
      const { status, short, message } = answerTo(error);
      answer(response, status, short, message);
    }
  }

  #forward({ target, path, outside, site, request, response }: Forwarding): void {
    const onward = httpRequest({
      method: request.method ?? "GET",
      path,
      setHost: false,
      headers: ["Host", hostHeader(target), ...onwardHeaders(request), "Connection", "close"],
      createConnection: () => site,
      maxHeaderSize: maxHeadBytes,
      insecureHTTPParser: false,
    });
    const fail = (detail: string) => {
      site.destroy();
      answer(response, 502, "no answer", `${shownTarget(target)} gave no sound answer: ${detail}.`);
    };
    let isLate = () => fail(`no answer within ${answerMs} ms`);
    outside.setTimeout(answerMs, () => isLate());
    onward.on("information", () => site.nextHead());
    onward.once("response", (back) => {
      // The site's bytes can cause an error here, and one that is thrown in a listener would end the worker.
      try {
        isLate = () => outside.destroy();
        outside.setTimeout(idleMs);
        passHead(back, response);
        const book = (receivedBytes: number) => this.#gate.count(target, { receivedBytes });
        const length = plainLength(back, request.method);
        if (length !== "parsed") return passBody({ back, site, response, length, book, fail });
        site.parseBody();
        pump(back, response, book);
      } catch (error) {
        fail((error as Error).message);
      }
    });
    onward.on("error", (error) => {
      if (!site.isPassed) fail(error.message);
    });
    // Also after an answer that is none, such as an upgrade, and before the client listens to the stream.
    for (const one of [onward, site])
      one.once("close", () => {
        if (!response.headersSent) fail("it ended the connection");
      });
    response.once("close", () => site.destroy());
    pump(request, onward, (sentBytes) => this.#gate.count(target, { sentBytes }));
  }
}

interface Forwarding {
  readonly target: Target;
  readonly path: string;
  readonly outside: Socket;
  readonly site: SiteStream;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

function hostHeader(target: Target): string {
  const shown = shownTarget(target);
  return target.port === 80 ? shown.slice(0, shown.lastIndexOf(":")) : shown;
}

/** Names and values alternate. */
function onwardHeaders(request: IncomingMessage): string[] {
  const kept = keptHeaders(request);
  return request.headers["transfer-encoding"] === undefined
    ? kept
    : [...kept, "Transfer-Encoding", "chunked"];
}

interface Answer {
  readonly status: number;
  readonly short: string;
  readonly message: string;
}

function answerTo(error: unknown): Answer {
  if (error instanceof BadTarget) return { status: 400, short: "bad target", message: `${error.message}.` };
  if (error instanceof EgressDenied) {
    const status = { rule: 403, address: 403, ceiling: 429, unreachable: 502 }[error.why];
    return { status, short: error.short, message: error.message };
  }
  return { status: 502, short: "the proxy failed", message: "The proxy could not carry this request." };
}

/** An answer that has begun can only be broken off. */
function answer(response: ServerResponse, status: number, short: string, message: string): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const body = `berth egress: ${message}\n`;
  response.writeHead(status, short, {
    "content-type": "text/plain; charset=utf-8",
    "content-length": Buffer.byteLength(body),
    connection: "close",
  });
  response.end(body);
}

function refuse(socket: Duplex, status: number, short: string, message: string): void {
  if (socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const body = `berth egress: ${message}\n`;
  const head = [
    `HTTP/1.1 ${status} ${short}`,
    "Content-Type: text/plain; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
  // Drop what the client still sends.
  socket.on("data", () => {});
  setTimeout(() => socket.destroy(), 1_000).unref();
}
