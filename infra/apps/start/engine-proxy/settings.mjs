import { readFileSync } from "node:fs";
import path from "node:path";

/** A container without a `Runtime` gets the engine's default one. */
export const DEFAULT_RUNTIME = "default";
const DEFAULT_IMAGE = "berth-sandbox:bookworm";

/**
 * The rules of a fleet. What is not set is taken from the settings that its workers have, so that they may use what their
 * profiles name, and nothing else.
 * @param {Record<string, string | undefined>} environment
 * @param {{ rootless: boolean }} engine
 * @returns {import('./container-rules.mjs').Rules}
 */
export function rulesFrom(environment, { rootless }) {
  const file = environment.BERTH_CONFIG ? JSON.parse(readFileSync(environment.BERTH_CONFIG, "utf8")) : {};
  // A variable that is set wins over the file, as in the worker.
  const image = environment.BERTH_IMAGE || file.BERTH_IMAGE || DEFAULT_IMAGE;
  const runtime = environment.BERTH_RUNTIME || file.BERTH_RUNTIME || DEFAULT_RUNTIME;
  const profiles = Object.values(file.profiles ?? {});
  const named = (/** @type {string} */ field) => profiles.map((profile) => profile?.[field]).filter(Boolean);
  const { BERTH_WORKER_USER = "" } = environment;
  const worker = /^[1-9]\d*:[1-9]\d*$/.test(BERTH_WORKER_USER) ? [BERTH_WORKER_USER] : [];
  const images = listed(environment.BERTH_PROXY_IMAGES) ?? [image, DEFAULT_IMAGE, ...named("image")];
  return {
    fleet: environment.BERTH_FLEET || "default",
    workspaces: path.resolve(environment.BERTH_WORKSPACES || "/var/lib/berth/workspaces"),
    networks: listed(environment.BERTH_PROXY_NETWORKS) ?? ["none"],
    images: images.map(withTag),
    runtimes: listed(environment.BERTH_PROXY_RUNTIMES) ?? [runtime, ...named("runtime")],
    users: listed(environment.BERTH_PROXY_USERS) ?? worker,
    rootless,
  };
}

/** As the engine reads it: a name without a tag is `latest`. */
export function withTag(/** @type {string} */ image) {
  return image.includes("@") || /:[^/]*$/.test(image) ? image : `${image}:latest`;
}

function listed(/** @type {string | undefined} */ text) {
  const parts = (text ?? "").split(",").map((part) => part.trim());
  const found = parts.filter((part) => part !== "");
  return found.length > 0 ? found : undefined;
}
