/** Starts a Redis, a worker and a gateway in `DIRECTORY`, then is killed: `dying-starter.ts DIRECTORY`. */
import { join } from "node:path";
import { startProgram, startRedisServer } from "./program.ts";

const [directory = ""] = process.argv.slice(2);
const socket = join(directory, "redis.sock");
startRedisServer(["--port", "0", "--unixsocket", socket, "--save", ""], directory);
const env = {
  PATH: process.env.PATH ?? "",
  ...(process.env.DOCKER_HOST === undefined ? {} : { DOCKER_HOST: process.env.DOCKER_HOST }),
  REDIS_URL: `unix://${socket}`,
};
const programs = [
  startProgram("apps/worker/src/main.ts", {
    env: {
      ...env,
      BERTH_FLEET: `test-${process.pid}-orphans`,
      BERTH_WORKER_ID: "worker-1",
      BERTH_WORKSPACES: join(directory, "workspaces"),
      BERTH_WARM_COUNT: "0",
    },
  }),
  startProgram("apps/gateway/src/main.ts", {
    env: { ...env, BERTH_GATEWAY_PORT: "0", BERTH_ADMIN_KEY: "an-admin-key-for-tests-only-0123456789" },
  }),
];
for (const { stdout, stderr } of programs) {
  stdout?.pipe(process.stdout);
  stderr?.pipe(process.stderr);
}
