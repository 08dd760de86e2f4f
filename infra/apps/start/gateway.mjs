/**
 * The gateway's image starts here. A gateway without a key listens on loopback only, which no other container reaches; so
 * one is made up at the first start, unless it is given.
 */
import { adminKeyFile, ownAdminKey } from "./admin-key-file.mjs";
import { takeSecrets } from "./secrets.mjs";

takeSecrets(process.env, ["REDIS_URL", "BERTH_ADMIN_KEY"]);
if (!process.env.BERTH_ADMIN_KEY) {
  process.env.BERTH_ADMIN_KEY = ownAdminKey();
  process.stderr.write(`berth-gateway: no BERTH_ADMIN_KEY; using the one in ${adminKeyFile}\n`);
}
await import("../dist/main.js");
