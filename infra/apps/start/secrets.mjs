import { readFileSync } from "node:fs";

/**
 * A secret may come as a file: `REDIS_URL_FILE=/run/secrets/redis-url` instead of `REDIS_URL=…`, which every user who
 * may inspect the container could read. Set to nothing counts as absent, as everywhere. A variable that is set wins over its
 * file: the compose file names one for its own Redis.
 * @param {Record<string, string | undefined>} environment changed in place
 * @param {string[]} names
 */
export function takeSecrets(environment, names) {
  for (const name of names) {
    const file = environment[`${name}_FILE`];
    delete environment[`${name}_FILE`];
    if (file && !environment[name]) environment[name] = readFileSync(file, "utf8").trim();
  }
}
