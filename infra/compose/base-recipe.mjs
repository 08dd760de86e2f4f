/**
 * The images that the compose file takes from a registry, as they are made where none is reachable. Each carries its
 * recipe's fingerprint as a label; one made from another recipe is made again.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { FILE_SYSTEM_OPTIONS, SUITE } from "../sandbox/recipe.mjs";
import { NODE_VERSION, PNPM_VERSION } from "../setup/places.mjs";

export const carryScript = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../apps/carry.sh");

export const RECIPE_LABEL = "berth.base.recipe";

/** What both others are made of. One file system for both: fetching packages is what takes the time. */
export const DEBIAN_IMAGE = "berth-base-debian:bookworm";
/** In the place of node:24-bookworm-slim, with pnpm, and with init as this machine built it instead of a compiler. */
export const NODE_IMAGE = "berth-base-node:24";
/** In the place of redis: redis-server, redis-cli and their libraries, nothing else. */
export const REDIS_IMAGE = "berth-base-redis:7";

/** Unpacked, not installed: a quarter of the time, and nothing here needs a package's scripts. */
export const UNPACKED = ["--variant=extract"];
export const PACKAGES = [
  ...["bash", "coreutils", "dash", "findutils", "grep", "libc-bin", "sed"],
  ...["libstdc++6", "redis-server"],
];

export const NODE_DOCKERFILE = `FROM ${DEBIAN_IMAGE}
COPY root /
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
`;

// Uid 999 and /data as in the official image, so that the compose file fits both.
export const REDIS_DOCKERFILE = `FROM ${DEBIAN_IMAGE} AS whole
COPY carry.sh /
RUN sh /carry.sh /out /usr/bin/redis-server /usr/bin/redis-cli && mkdir -p /out/data && chown 999:999 /out/data
FROM scratch
COPY --from=whole /out /
ENV PATH=/usr/local/bin
WORKDIR /data
USER 999:999
VOLUME /data
CMD ["redis-server"]
`;

/**
 * @param {string} image
 * @param {string} initId what init calls its own build
 */
export function fingerprint(image, initId) {
  const debian = [SUITE, FILE_SYSTEM_OPTIONS, UNPACKED, PACKAGES];
  const madeOf = {
    [DEBIAN_IMAGE]: debian,
    [NODE_IMAGE]: [debian, NODE_DOCKERFILE, NODE_VERSION, PNPM_VERSION, process.arch, initId],
    [REDIS_IMAGE]: [debian, REDIS_DOCKERFILE, readFileSync(carryScript, "utf8")],
  };
  return createHash("sha256").update(JSON.stringify(madeOf[image])).digest("hex");
}
