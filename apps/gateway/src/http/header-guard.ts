import type { FastifyRequest } from "fastify";
import { isLoopback } from "../config.ts";
import { Problem } from "./problem.ts";

/** Headers that must not be sent twice. Node uses the first, a proxy perhaps the last; the two would then disagree. */
const once = new Set([
  "authorization",
  "berth-agent",
  "berth-session",
  "berth-tenant",
  "content-encoding",
  "content-length",
  "content-type",
  "cookie",
  "host",
  "idempotency-key",
  "last-event-id",
  "origin",
  "range",
  "if-none-match",
  "traceparent",
  "transfer-encoding",
]);

/** Refuses requests that a proxy and Node could parse differently (request smuggling). */
export function refuseAmbiguous(request: FastifyRequest): void {
  const { rawHeaders } = request.raw;
  const seen = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? "";
    if (!once.has(name)) continue;
    if (seen.has(name)) throw new Problem("duplicate-header", `${name} was given twice`);
    seen.add(name);
  }
  if (request.headers["content-encoding"] !== undefined) {
    throw new Problem("unsupported-media-type", "send the body as it is, without a Content-Encoding");
  }
}

/** Headers that a reverse proxy adds. */
const proxyHeader = /^(forwarded|via|x-forwarded-.*|x-real-ip)$/;

/**
 * For a gateway without keys, which treats every caller on its loopback address as the admin. A reverse proxy on the same machine
 * would make every caller one. nginx speaks HTTP/1.0 to its upstreams unless configured otherwise.
 */
function refuseProxied(request: FastifyRequest): void {
  const header = Object.keys(request.headers).find((name) => proxyHeader.test(name));
  if (header === undefined && request.raw.httpVersion !== "1.0") return;
  const sign = header === undefined ? "it is HTTP/1.0" : `it has the header ${header}`;
  throw new Problem(
    "unauthorized",
    `the request seems to come through a proxy (${sign}), and this gateway has no key yet; make one on its machine with ` +
      "`berth key create NAME --admin`, or set BERTH_ADMIN_KEY",
  );
}

/**
 * For a gateway without keys: keeps web pages in a local browser out. Refuses a foreign Host, which DNS rebinding sends, and a
 * foreign Origin or Sec-Fetch-Site, which a page of another site sends.
 */
export function refuseForeignCallers(request: FastifyRequest): void {
  refuseProxied(request);
  const { host = "", origin, "sec-fetch-site": site } = request.headers;
  if (!isLoopback(hostName(host))) {
    throw new Problem(
      "wrong-host",
      "without keys this gateway answers only to localhost, 127.0.0.1 and [::1]",
    );
  }
  refuseCrossOrigin(host, origin, site);
}

/** Neither another origin's page nor a link from one. */
export function refuseCrossOrigin(host: string, origin: string | undefined, site: unknown): void {
  const ours = origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
  const near = site === undefined || site === "same-origin" || site === "none";
  if (!ours || !near) throw new Problem("cross-origin", "the request comes from a page of another origin");
}

function hostName(host: string): string {
  const [, v6, name] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:]*))(?::\d+)?$/.exec(host) ?? [];
  return (v6 ?? name ?? "").toLowerCase();
}
