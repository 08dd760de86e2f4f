import { Readable } from "node:stream";
import { artifactId, tenantId } from "@berth/protocol";
import { z } from "zod";
import { rangeOf } from "../http/byte-range.ts";
import { Problem } from "../http/problem.ts";
import { type AnyRoute, route } from "../http/route.ts";
import { mayTouch } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";

const saneType = /^[a-z0-9][a-z0-9.+-]*\/[a-z0-9][a-z0-9.+-]*(; ?charset=utf-8)?$/i;

export function artifactRoutes({ artifacts }: Parts): AnyRoute[] {
  const fetch = route(
    {
      method: "GET",
      path: "/v1/artifacts/:id",
      tag: "jobs",
      summary: "The bytes of a file that a job left",
      about: "Always as a download: what a tenant wrote is never shown as a page of this gateway.",
      access: "key",
      params: z.object({ id: artifactId }),
      query: z.object({ tenant: tenantId.optional().describe("only if it is this tenant's") }),
      headers: z.object({
        range: z.string().max(200).optional().describe("one range of bytes"),
        "if-none-match": z.string().max(1_000).optional(),
        "if-range": z.string().max(200).optional(),
      }),
      answers: {
        200: { about: "All of it", type: "application/octet-stream" },
        206: { about: "The range", type: "application/octet-stream" },
        304: { about: "It is what the caller has" },
      },
    },
    async ({ params, query, headers, principal, signal }) => {
      const meta = await artifacts.meta(params.id);
      const isWanted = query.tenant === undefined || query.tenant === meta?.tenant;
      if (!meta || !isWanted || !mayTouch(principal, meta.tenant)) {
        throw new Problem("not-found", "there is no such artifact, or it has expired");
      }
      const etag = `"${meta.sha256}"`;
      const about = {
        etag,
        "accept-ranges": "bytes",
        "cache-control": "private, max-age=31536000, immutable",
        "content-type": saneType.test(meta.mime) ? meta.mime : "application/octet-stream",
        "content-disposition": disposition(meta.path),
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
      };
      if (headers["if-none-match"]?.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag)) {
        return { status: 304, headers: { etag } };
      }
      const stale = headers["if-range"] !== undefined && headers["if-range"] !== etag;
      const range = stale ? undefined : rangeOf(headers.range, meta.size);
      const bytes = await artifacts.stream(params.id, range);
      if (!bytes) throw new Problem("not-found", "there is no such artifact any more");
      const body = Readable.from(bytes, { objectMode: false, signal });
      if (!range) return { status: 200, headers: { ...about, "content-length": String(meta.size) }, body };
      const last = range.offset + range.length - 1;
      return {
        status: 206,
        headers: {
          ...about,
          "content-length": String(range.length),
          "content-range": `bytes ${range.offset}-${last}/${meta.size}`,
        },
        body,
      };
    },
  );
  return [fetch];
}

/** A file name for the download: in ASCII for all clients, and exact for those that support it (RFC 6266). */
function disposition(path: string): string {
  const name = path.split("/").at(-1) ?? "artifact";
  const plain = name.replaceAll(/[^A-Za-z0-9._ -]/g, "_");
  const whole = encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${whole}`;
}
