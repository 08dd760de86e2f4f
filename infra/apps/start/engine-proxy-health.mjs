/** Health check: exits with 0 if the engine answers through the proxy. */
import http from "node:http";

setTimeout(() => process.exit(1), 4_000);
const socketPath = process.env.BERTH_PROXY_SOCKET || "/run/berth-engine/engine.sock";
http
  .get({ socketPath, path: "/_ping", agent: false }, ({ statusCode }) =>
    process.exit(statusCode === 200 ? 0 : 1),
  )
  .on("error", () => process.exit(1));
