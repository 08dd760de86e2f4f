/** Healthy is a proxy through which the engine answers. */
import { Engine } from "./engine.mjs";

setTimeout(() => process.exit(1), 4_000);
const answer = await new Engine(process.env.BERTH_PROXY_SOCKET || "/run/berth-engine/engine.sock").answer(
  "GET",
  "/_ping",
);
process.exit(answer.statusCode === 200 ? 0 : 1);
