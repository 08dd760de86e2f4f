/**
 * The calls to the engine that a worker makes, and no others. Names and ids have no slash and no percent sign in them, so a
 * path means to the engine what it means here.
 *
 *   info                  what the engine can do           driver.ts, starter.ts; the worker's start
 *   list                  the fleet's containers           containers.ts
 *   create … remove       one container's life             containers.ts
 *   attach                frames to and from init          containers.ts
 *   image, pull           the sandboxes' image             image.ts
 */
const ID = "([A-Za-z0-9][A-Za-z0-9_.-]*)";
const IMAGE = "([A-Za-z0-9][A-Za-z0-9_.:@/-]*)";

/** @typedef {{ call: string, id?: string }} Known */

const CALLS = [
  ["GET", "/_ping", "ping"],
  ["GET", "/info", "info"],
  ["GET", "/containers/json", "list"],
  ["POST", "/containers/create", "create"],
  ["GET", `/containers/${ID}/json`, "inspect"],
  ["POST", `/containers/${ID}/start`, "start"],
  ["DELETE", `/containers/${ID}`, "remove"],
  ["GET", `/images/${IMAGE}/json`, "image"],
  ["POST", "/images/create", "pull"],
].map(([method, path, call]) => ({ method, pattern: new RegExp(`^(?:/v1\\.\\d+)?${path}$`), call }));

/** The connection becomes a stream of bytes. */
const STREAMS = [["POST", `/containers/${ID}/attach`, "attach"]].map(([method, path, call]) => ({
  method,
  pattern: new RegExp(`^(?:/v1\\.\\d+)?${path}$`),
  call,
}));

/**
 * @param {string | undefined} method
 * @param {string} path without the query
 * @returns {Known | undefined}
 */
export const knownCall = (method, path) => find(CALLS, method, path);

/**
 * @param {string | undefined} method
 * @param {string} path
 * @returns {Known | undefined}
 */
export const knownStream = (method, path) => find(STREAMS, method, path);

function find(calls, method, path) {
  if (path.includes("..") || path.includes("//")) return undefined;
  for (const { method: wanted, pattern, call } of calls) {
    const match = method === wanted ? pattern.exec(path) : null;
    if (match) return match[1] === undefined ? { call } : { call, id: match[1] };
  }
  return undefined;
}
