import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { BlockList } from "node:net";
import { pinnedAddress } from "./address.ts";

/** From the look-up of the name to the last byte of the answer. */
const deadlineMs = 10_000;

/**
 * Sends a body to somebody's address. The connection goes to the address that was checked, whatever the name says by then;
 * redirections are not followed, since they would lead anywhere.
 */
export async function post(
  url: URL,
  body: string,
  headers: Readonly<Record<string, string>>,
  allowed: BlockList,
): Promise<number> {
  const pinned = await pinnedAddress(url.hostname, allowed);
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  return new Promise<number>((resolve, reject) => {
    const request = send(url, {
      method: "POST",
      headers: {
        ...headers,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        "user-agent": "berth-gateway",
      },
      agent: false,
      signal: AbortSignal.timeout(deadlineMs),
      lookup: (_, options, callback) => {
        if (options.all) callback(null, [pinned]);
        else callback(null, pinned.address, pinned.family);
      },
    });
    request.on("response", (response) => {
      // What it says is nobody's business; that it answered is.
      response.destroy();
      resolve(response.statusCode ?? 0);
    });
    request.on("error", reject);
    request.end(body);
  });
}
