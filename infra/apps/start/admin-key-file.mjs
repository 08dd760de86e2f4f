import { randomBytes } from "node:crypto";
import { writtenOnce } from "./once.mjs";

/** In the gateway's own volume: the same key after an upgrade. */
export const adminKeyFile = "/var/lib/berth/gateway/admin-key";

/** The key made up at the first start where none was given. Never in a log; `docker compose exec gateway admin-key` shows it. */
export function ownAdminKey(file = adminKeyFile) {
  return writtenOnce(file, () => `${randomBytes(32).toString("base64url")}\n`, 0o600).trim();
}
