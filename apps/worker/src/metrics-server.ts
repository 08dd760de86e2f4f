import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Metrics } from "@berth/service";

export interface MetricsServer {
  /** `http://host:port/metrics`. */
  readonly url: string;
  close(): void;
}

/** Serves the worker's metrics. Throws when the address cannot be listened on. */
export async function serveMetrics(
  metrics: Metrics,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<MetricsServer> {
  const server = createServer(async ({ method, url }, response) => {
    const known = method === "GET" && url === "/metrics";
    const text = known ? await metrics.text() : "";
    response.writeHead(known ? 200 : 404, { "content-type": Metrics.contentType }).end(text);
  });
  server.listen(port, host);
  await once(server, "listening");
  const { address, family, port: chosen } = server.address() as AddressInfo;
  return {
    url: `http://${family === "IPv6" ? `[${address}]` : address}:${chosen}/metrics`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
