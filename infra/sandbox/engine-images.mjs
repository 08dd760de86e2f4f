/** Images on the engine: looked at, pulled, built, imported, removed. Answers are streams of JSON lines; errors come with status 200. */
import { appendFileSync } from "node:fs";
import { askEngine, callEngine } from "../setup/engine-api.mjs";

/** @typedef {import('../setup/engine-api.mjs').Engine} Engine */

/**
 * @param {Engine} engine
 * @param {string} name
 * @returns {Promise<any | undefined>} the engine's description of it
 */
export function inspectImage(engine, name) {
  return askEngine(engine, "GET", `/images/${encodeURIComponent(name)}/json`);
}

/**
 * @param {Engine} engine
 * @param {string} name
 * @param {{ log: string, firstAnswerMs: number }} options a registry that cannot be reached must not cost minutes:
 *   the pull is given up when the engine has not begun to receive it by then
 */
export async function pullImage(engine, name, options) {
  const [repository, tag] = splitName(name);
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(new Error("no registry answered")), options.firstAnswerMs);
  const query = new URLSearchParams({ fromImage: repository, tag });
  await progressCall(engine, `/images/create?${query}`, {
    log: options.log,
    signal: giveUp.signal,
    stallMs: 60_000,
    onLine: (line) => {
      if (line.status) clearTimeout(timer);
    },
  }).finally(() => clearTimeout(timer));
}

/**
 * @param {Engine} engine
 * @param {string} name
 * @param {Buffer} context a tar with a Dockerfile in it
 * @param {{ log: string, labels?: Record<string, string>, buildArgs?: Record<string, string> }} options
 */
export async function buildImage(engine, name, context, options) {
  const query = new URLSearchParams({
    t: name,
    rm: "1",
    forcerm: "1",
    labels: JSON.stringify(options.labels ?? {}),
    buildargs: JSON.stringify(options.buildArgs ?? {}),
  });
  // The host's own way out is known to work; a bridge's names and routes are one more thing that may not.
  query.set("networkmode", "host");
  await progressCall(engine, `/build?${query}`, {
    log: options.log,
    body: context,
    headers: { "content-type": "application/x-tar" },
    stallMs: 5 * 60_000,
  });
}

/**
 * @param {Engine} engine
 * @param {string} name
 * @param {Buffer | import('node:stream').Readable} fileSystem a tar
 * @param {{ log: string, settings: string[] }} options Dockerfile instructions that describe the image
 */
export async function importImage(engine, name, fileSystem, options) {
  const [repository, tag] = splitName(name);
  const query = new URLSearchParams({ fromSrc: "-", repo: repository, tag });
  for (const setting of options.settings) query.append("changes", setting);
  await progressCall(engine, `/images/create?${query}`, {
    log: options.log,
    body: fileSystem,
    headers: { "content-type": "application/x-tar" },
    // mmdebstrap is silent until the whole file system is ready, which takes minutes on a slow mirror.
    stallMs: 15 * 60_000,
  });
}

/**
 * Removes an image that lost its name to a newer one. One that a container still uses stays; the engine refuses.
 * @param {Engine} engine
 * @param {string} id
 */
export async function removeNameless(engine, id) {
  const image = await inspectImage(engine, id);
  if (!image || image.RepoTags?.length > 0) return;
  await askEngine(engine, "DELETE", `/images/${encodeURIComponent(id)}`).catch(() => undefined);
}

async function progressCall(engine, target, options) {
  let failure;
  const { status } = await callEngine(engine, "POST", target, {
    ...options,
    onLine: (line) => {
      const text =
        line.stream ?? line.error ?? line.message ?? (line.progressDetail?.total ? "" : line.status) ?? "";
      if (text) appendFileSync(options.log, text.endsWith("\n") ? text : `${text}\n`);
      if (line.error ?? line.message) failure = line.error ?? line.message;
      options.onLine?.(line);
    },
  });
  if (failure || status >= 400) throw new Error(failure ?? `engine answered ${status}`);
}

function splitName(name) {
  const colon = name.lastIndexOf(":");
  return [name.slice(0, colon), name.slice(colon + 1)];
}
