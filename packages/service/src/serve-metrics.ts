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

/**
 * Serves metrics, and nothing else, to anyone who can reach the address. If a metric cannot be read, that scrape is answered with 500.
 * Throws if it cannot listen there.
 */
export async function serveMetrics(metrics: Metrics, { host, port }: ListenAddress): Promise<MetricsServer> {
  const server = createServer(({ method, url }, response) => {
    const answer = (status: number, text: string) => {
      response.writeHead(status, { "content-type": Metrics.contentType }).end(text);
    };
    const isKnown = method === "GET" && url === "/metrics";
    if (!isKnown) answer(404, "");
    else
      metrics.text().then(
        (text) => answer(200, text),
        (error: unknown) => answer(500, `a metric cannot be read: ${String(error)}\n`),
      );
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
