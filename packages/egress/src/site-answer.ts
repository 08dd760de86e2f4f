import {
  type IncomingMessage,
  type ServerResponse,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} from "node:http";
import type { SiteStream } from "./site-stream.ts";

const ofConnection = new Set([
  ...["connection", "keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate"],
  ...["te", "trailer", "transfer-encoding", "upgrade", "host"],
]);

/** How many bytes the body has, by what the parser accepted; undefined: all up to the end. `parsed`: only the parser finds its end. */
export function plainLength(
  { headers, statusCode }: IncomingMessage,
  method = "GET",
): number | undefined | "parsed" {
  if (method === "HEAD" || statusCode === 204 || statusCode === 304) return "parsed";
  if (headers["transfer-encoding"] !== undefined) return "parsed";
  const text = headers["content-length"];
  if (text === undefined) return undefined;
  const length = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  return length === 0 ? "parsed" : length;
}

interface Passing {
  readonly back: IncomingMessage;
  readonly site: SiteStream;
  readonly response: ServerResponse;
  readonly length: number | undefined;
  readonly book: (bytes: number) => number | undefined;
  readonly fail: (detail: string) => void;
}

export function passBody({ back, site, response, length, book, fail }: Passing): void {
  // Its end is not seen by the parser: with its connection it counts as broken off.
  back.on("error", () => {});
  // When the parser has read all that it got: its head has to end where ours does.
  queueMicrotask(() => {
    if (back.readableLength > 0 || back.complete) fail("its head has two ends");
    else site.passBody(response, length, book);
  });
}

/** Throws, before anything was sent, on what may not be passed on. The reason's words are ours: a site's may have any bytes. */
export function passHead(back: IncomingMessage, response: ServerResponse): void {
  const status = back.statusCode ?? 0;
  if (status < 200 || status > 999) throw new Error(`its status is ${status}`);
  const headers = keptHeaders(back);
  for (let at = 0; at < headers.length; at += 2) {
    const [name = "", value = ""] = [headers[at], headers[at + 1]];
    validateHeaderName(name);
    validateHeaderValue(name, value);
  }
  response.shouldKeepAlive = false;
  response.writeHead(status, STATUS_CODES[status] ?? "", [...headers, "Connection", "close"]);
}

/** Removes hop-by-hop headers, and those that the Connection header names. */
export function keptHeaders({ rawHeaders, headers }: IncomingMessage): string[] {
  const named = (headers.connection ?? "").split(",").map((one) => one.trim().toLowerCase());
  const kept: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = "", value = ""] = [rawHeaders[at], rawHeaders[at + 1]];
    const lower = name.toLowerCase();
    if (!ofConnection.has(lower) && (lower === "content-length" || !named.includes(lower)))
      kept.push(name, value);
  }
  return kept;
}
