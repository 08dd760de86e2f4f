import { request as httpRequest, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { connect as tlsConnect } from "node:tls";
import { EgressDenied, type EgressGate, hourUsed } from "./gate.ts";
import { BadTarget, readAuthority, type Target } from "./target.ts";

const maxHeadBytes = 16 * 1024;
const mostRedirects = 5;
const redirects = new Set([301, 302, 303, 307, 308]);

export interface Download {
  /** The status of the last answer, after redirects. */
  readonly url: string;
  readonly status: number;
  readonly type: string | undefined;
  readonly redirects: number;
  /** From the content-length header. */
  readonly size: number | undefined;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** GETs a URL through the gate of a sandbox. Each redirect is a new request, and is checked like the first. Throws `EgressDenied`, `BadTarget`. */
export async function download(gate: EgressGate, text: string, signal: AbortSignal): Promise<Download> {
  let url = readUrl(text);
  for (let followed = 0; ; followed++) {
    const { answer, target } = await ask(gate, url, signal);
    const status = answer.statusCode ?? 0;
    const { location } = answer.headers;
    if (!redirects.has(status) || location === undefined) {
      const length = answer.headers["content-length"];
      return {
        ...{ url: url.href, status, redirects: followed, type: answer.headers["content-type"] },
        size: length === undefined ? undefined : Number(length),
        chunks: counted(answer, gate, target, signal),
      };
    }
    answer.destroy();
    if (followed === mostRedirects) throw new BadTarget(`it redirects more than ${mostRedirects} times`);
    url = readUrl(location, url);
  }
}

function readUrl(text: string, base?: URL): URL {
  if (!URL.canParse(text, base?.href)) throw new BadTarget(`${text.slice(0, 200)} is not a URL`);
  const url = new URL(text, base);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new BadTarget(`${url.protocol} is not fetched; only http: and https: are`);
  if (url.username !== "" || url.password !== "") throw new BadTarget("the URL carries a user or password");
  if (base?.protocol === "https:" && url.protocol === "http:")
    throw new BadTarget("it redirects from https: to http:");
  return url;
}

async function ask(gate: EgressGate, url: URL, signal: AbortSignal) {
  const isTls = url.protocol === "https:";
  const target = readAuthority(url.host, isTls ? 443 : 80);
  const plain = await gate.connect(target, signal);
  const socket = isTls ? await secured(plain, target, signal) : plain;
  const request = httpRequest({
    method: "GET",
    path: `${url.pathname}${url.search}`,
    headers: {
      host: url.host,
      accept: "*/*",
      "accept-encoding": "identity",
      "user-agent": "berth-fetch",
      connection: "close",
    },
    createConnection: () => socket,
    maxHeaderSize: maxHeadBytes,
    insecureHTTPParser: false,
    signal,
  });
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request.once("response", resolve);
    request.once("error", (error) =>
      reject(signal.aborted ? signal.reason : unreachable(url.host, error.message)),
    );
    // Also closes after an upgrade, which gives no answer.
    request.once("close", () => reject(unreachable(url.host, "it ended the connection")));
    request.end();
  });
  // Errors after the head reach the reader of the body.
  request.on("error", () => {});
  return { answer, target };
}

function secured(plain: Socket, { host }: Target, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const name = host.kind === "name" ? { servername: host.host } : {};
    const socket = tlsConnect({ socket: plain, host: host.host, ...name, ALPNProtocols: ["http/1.1"] });
    const onAbort = () => socket.destroy(new Error("it was ended"));
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    // This listener stays: a second error without a listener would end the worker.
    socket.on("error", (error) => {
      signal.removeEventListener("abort", onAbort);
      plain.destroy();
      reject(unreachable(host.host, error.message));
    });
    socket.once("secureConnect", () => {
      signal.removeEventListener("abort", onAbort);
      resolve(socket);
    });
  });
}

async function* counted(answer: IncomingMessage, gate: EgressGate, target: Target, signal: AbortSignal) {
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      const waitMs = gate.count(target, { receivedBytes: chunk.length });
      if (waitMs === undefined) throw hourUsed();
      if (waitMs >= 1) await new Promise((resolve) => setTimeout(resolve, waitMs));
      signal.throwIfAborted();
      yield chunk;
    }
  } catch (error) {
    if (error instanceof EgressDenied || signal.aborted) throw error;
    throw unreachable(target.host.host, (error as Error).message);
  } finally {
    answer.destroy();
  }
}

function unreachable(host: string, detail: string): EgressDenied {
  return new EgressDenied("unreachable", "it broke off", `${host} gave no whole answer: ${detail}.`);
}
