import { randomBytes } from "node:crypto";
import { writtenOnce } from "./once.mjs";

/** The key's file in the gateway's volume, so that the key survives an upgrade. */
export const adminKeyFile = "/var/lib/berth/gateway/admin-key";

/** The admin key, generated at the first start if none is given. It is in no log; `docker compose exec gateway admin-key` shows it. */
export function ownAdminKey(file = adminKeyFile) {
  return writtenOnce(file, () => `${randomBytes(32).toString("base64url")}\n`, 0o600).trim();
}
