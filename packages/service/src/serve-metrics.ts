import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { ListenAddress } from "./listen-address.ts";
import { Metrics } from "./metrics.ts";

export interface MetricsServer {
  /** `http://host:port/metrics`. */
  readonly url: string;
  close(): void;
}

/** Serves metrics, and nothing else, to anyone who can reach the address. Throws if it cannot listen there. */
export async function serveMetrics(metrics: Metrics, { host, port }: ListenAddress): Promise<MetricsServer> {
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
