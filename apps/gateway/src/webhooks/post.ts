import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { BlockList } from "node:net";
import { pinnedAddress } from "@berth/egress";
import { webhookResolver } from "./resolver.ts";

/** From the DNS look-up to the last byte of the answer. */
const deadlineMs = 10_000;

/**
 * Posts a body to a tenant's URL. Connects to the address that was checked, even if the name's DNS changes meanwhile. Does not
 * follow redirects, which could lead to any address.
 */
export async function post(
  url: URL,
  body: string,
  headers: Readonly<Record<string, string>>,
  allowed: BlockList,
): Promise<number> {
  const signal = AbortSignal.timeout(deadlineMs);
  const looking = pinnedAddress(url.hostname, allowed, webhookResolver(signal));
  const pinned = await unlessAborted(looking, signal);
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
      signal,
      lookup: (_, options, callback) => {
        if (options.all) callback(null, [pinned]);
        else callback(null, pinned.address, pinned.family);
      },
    });
    request.on("response", (response) => {
      // The answer's body is dropped; only its status counts.
      response.destroy();
      resolve(response.statusCode ?? 0);
    });
    request.on("error", reject);
    // Also after an answer that is none, such as an upgrade.
    request.on("close", () => reject(new Error("it ended the connection without an answer")));
    request.end(body);
  });
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const over = Promise.withResolvers<never>();
  const end = () => over.reject(signal.reason);
  signal.addEventListener("abort", end, { once: true });
  try {
    return await Promise.race([work, over.promise]);
  } finally {
    signal.removeEventListener("abort", end);
  }
}
