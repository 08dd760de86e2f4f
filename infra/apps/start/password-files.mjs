import { randomBytes } from "node:crypto";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { writtenOnce } from "./once.mjs";

/** Passwords are files in volumes that only the containers which need them mount. These run as different users, so all users may read them. */
const MODE = 0o444;
export const passwordFolders = { redis: "/run/berth/redis", grafana: "/run/berth/grafana" };

/**
 * @param {Record<string, string | undefined>} environment
 * @param {{ redis: string, grafana: string }} folders
 */
export function makePasswords(environment, folders = passwordFolders) {
  password(folders.grafana, environment.BERTH_GRAFANA_PASSWORD);
  const redis = password(folders.redis, environment.BERTH_REDIS_PASSWORD);
  const put = (name, text) => replaced(path.join(folders.redis, name), text);
  put("url", `redis://:${encodeURIComponent(redis)}@redis:6379\n`);
  // The health check's user may have any password and do nothing but ping.
  put("auth.conf", `requirepass ${JSON.stringify(redis)}\nuser health on nopass -@all +ping\n`);
}

function password(folder, given) {
  const file = path.join(folder, "password");
  if (given) replaced(file, `${given}\n`);
  return writtenOnce(file, () => `${randomBytes(32).toString("base64url")}\n`, MODE).trim();
}

/** Writes a read-only file under another name and renames it, so that no reader sees a part of it. */
function replaced(file, text) {
  const aside = `${file}.${process.pid}`;
  rmSync(aside, { force: true });
  writeFileSync(aside, text, { mode: MODE });
  renameSync(aside, file);
}
