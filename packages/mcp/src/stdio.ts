import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { FleetPort } from "./port.ts";
import { makeMcpServer, type ServerOptions } from "./server.ts";
import type { Toolbox } from "./toolbox.ts";

export interface StdioOptions extends Omit<ServerOptions, "cancelsWhenClosed" | "stopping"> {
  /** Ends the server. */
  readonly signal: AbortSignal;
  readonly onError: (error: Error) => void;
}

/** Serves the client on stdin and stdout until it closes them, or the signal fires. */
export async function serveMcpStdio(
  port: FleetPort,
  { signal, onError, ...options }: StdioOptions,
): Promise<void> {
  const toolboxes: Toolbox[] = [];
  const closed = Promise.withResolvers<void>();
  const handle = serveStdio(
    () => {
      const { server, toolbox } = makeMcpServer(port, { ...options, cancelsWhenClosed: true });
      toolboxes.push(toolbox);
      return server;
    },
    { onerror: onError, maxSubscriptions: 0 },
  );
  const end = () => closed.resolve();
  process.stdin.once("end", end).once("close", end);
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  await closed.promise;
  await handle.close();
  await Promise.all(toolboxes.map((toolbox) => toolbox.finishOpenCalls()));
}
