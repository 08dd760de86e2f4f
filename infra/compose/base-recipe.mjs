/**
 * The images that the compose file would take from a registry, and what they are made of where none is reachable. Each has
 * a fingerprint of that as a label; one that was made of something else is made again.
 */
import { createHash } from "node:crypto";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { SANDBOX_IMAGE } from "../sandbox/recipe.mjs";

export const carryScript = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../apps/carry.sh");

export const RECIPE_LABEL = "berth.base.recipe";

/**
 * In the place of node:24-bookworm-slim: the sandboxes' image, which is Debian, with Node and pnpm from npm, and with init as this
 * machine built it instead of a compiler.
 */
export const NODE_IMAGE = "berth-base-node:24";
export const NODE_DOCKERFILE = `FROM ${SANDBOX_IMAGE}
COPY root /
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
`;

/** Replaces the redis image: this machine's redis-server and redis-cli, from Debian's package, with only their libraries. */
export const REDIS_IMAGE = "berth-base-redis:7";
// Uid 999 and /data as in the official image, so that the compose file fits both.
export const REDIS_UID = 999;
export const REDIS_SETTINGS = [
  "ENV PATH=/usr/local/bin",
  "WORKDIR /data",
  `USER ${REDIS_UID}:${REDIS_UID}`,
  "VOLUME /data",
  'CMD ["redis-server"]',
];

/** @param {(string | Buffer)[]} parts */
export function fingerprint(...parts) {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(createHash("sha256").update(part).digest());
  return hash.digest("hex");
}
