import { BoundedWait } from "@berth/protocol";
import { createMcpHandler } from "@modelcontextprotocol/server";
import type { FleetPort } from "./port.ts";
import { makeMcpServer, type ServerOptions } from "./server.ts";

export interface HttpMessage {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** One parsed JSON-RPC message. */
  readonly body: unknown;
  /** Fires when the caller disconnects. */
  readonly signal: AbortSignal;
}

export interface HttpOptions extends Omit<ServerOptions, "cancelsWhenClosed"> {
  readonly onError: (error: Error) => void;
}

/** The protocol's headers; keys and cookies are not passed on. */
const passedOn = /^(accept|content-type|mcp-.*)$/;

/** Answers one POST of the streamable HTTP transport, without a session: revision 2026-07-28 and the ones before it. */
export async function answerMcpPost(
  port: FleetPort,
  message: HttpMessage,
  options: HttpOptions,
): Promise<Response> {
  const { onError, ...more } = options;
  const handler = createMcpHandler(
    ({ era }) => {
      // Before 2026-07-28 a broken connection is not a cancellation: it only ends the reading of the job's events.
      if (era === "modern") return makeMcpServer(port, { ...more, cancelsWhenClosed: true }).server;
      const stopping = new BoundedWait().endWith(message.signal, more.stopping).signal;
      return makeMcpServer(port, { ...more, stopping, cancelsWhenClosed: false }).server;
    },
    { onerror: onError, maxSubscriptions: 0 },
  );
  const headers = new Headers();
  for (const [name, value] of Object.entries(message.headers))
    if (typeof value === "string" && passedOn.test(name)) headers.set(name, value);
  const request = new Request("http://localhost/mcp", { method: "POST", headers, signal: message.signal });
  return handler.fetch(request, { parsedBody: message.body });
}
