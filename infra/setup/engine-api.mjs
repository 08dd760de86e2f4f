/**
 * The little of the Docker Engine's HTTP API that set-up needs, over node:http, because a machine may have an engine
 * and no `docker` command. Paths carry no version: the engine then answers in its own newest one.
 */
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import os from "node:os";
import path from "node:path";
import { SetupProblem } from "./problem.mjs";

export const DEFAULT_ADDRESS = "unix:///var/run/docker.sock";

/** @typedef {{ address: string, request: http.RequestOptions, secure: boolean }} Engine */

/** Addresses worth asking: DOCKER_HOST alone when it is set, since falling back would use an engine that the user did not choose. */
export function engineAddresses(environment = process.env) {
  if (environment.DOCKER_HOST) return [environment.DOCKER_HOST];
  const rootless = environment.XDG_RUNTIME_DIR ? [`unix://${environment.XDG_RUNTIME_DIR}/docker.sock`] : [];
  return [DEFAULT_ADDRESS, ...rootless, `unix://${os.homedir()}/.docker/run/docker.sock`];
}

/**
 * @param {string} address in DOCKER_HOST's form
 * @returns {Engine}
 */
export function engineAt(address, environment = process.env) {
  if (address.startsWith("unix://")) {
    return { address, request: { socketPath: address.slice("unix://".length) }, secure: false };
  }
  const url = asUrl(address);
  if (url?.protocol === "tcp:" || url?.protocol === "http:" || url?.protocol === "https:") {
    const secure = url.protocol === "https:" || Boolean(environment.DOCKER_TLS_VERIFY);
    const request = { host: url.hostname, port: url.port || (secure ? 2376 : 2375) };
    return { address, request: secure ? { ...request, ...certificates(environment) } : request, secure };
  }
  throw new SetupProblem(`Set-up cannot reach a Docker engine at ${address}.`, {
    why: "it speaks to engines over unix:// and tcp:// only",
    fix: [
      "set DOCKER_HOST to a unix:// or tcp:// address (for ssh://, forward the remote socket: ssh -L ./docker.sock:/var/run/docker.sock HOST)",
    ],
  });
}

function asUrl(address) {
  try {
    return new URL(address);
  } catch {
    return undefined;
  }
}

function certificates(environment) {
  const folder = environment.DOCKER_CERT_PATH ?? path.join(os.homedir(), ".docker");
  const read = (name) => readFileSync(path.join(folder, name));
  try {
    return { ca: read("ca.pem"), cert: read("cert.pem"), key: read("key.pem") };
  } catch (error) {
    throw new SetupProblem("DOCKER_TLS_VERIFY is set, but the client certificates cannot be read.", {
      why: error.message,
      fix: ["set DOCKER_CERT_PATH to the folder that holds ca.pem, cert.pem and key.pem"],
    });
  }
}

/**
 * One call. `body` may be a stream, which is sent as it comes; `onLine` gets each JSON line of a progress answer.
 * `stallMs` bounds the silence between two pieces of the answer, and so also the wait for its first.
 * @param {Engine} engine
 * @param {string} method
 * @param {string} target path and query
 * @param {{ body?: Buffer | string | import('node:stream').Readable, headers?: Record<string, string>,
 *           stallMs?: number, signal?: AbortSignal, onLine?: (line: any) => void }} [options]
 * @returns {Promise<{ status: number, body: Buffer }>}
 */
export function callEngine(engine, method, target, options = {}) {
  const { body, headers, stallMs = 60_000, signal, onLine } = options;
  return new Promise((resolve, reject) => {
    const request = (engine.secure ? https : http).request({
      ...engine.request,
      method,
      path: target,
      headers,
      signal,
      agent: false,
    });
    request.setTimeout(stallMs, () =>
      request.destroy(new Error(`no answer for ${Math.round(stallMs / 1000)} s`)),
    );
    request.on("error", reject);
    request.on("response", (response) => {
      const chunks = [];
      let rest = "";
      response.on("data", (chunk) => {
        if (!onLine) return void chunks.push(chunk);
        rest += chunk;
        const lines = rest.split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) if (line.trim()) onLine(JSON.parse(line));
      });
      response.on("error", reject);
      response.on("end", () => {
        if (rest.trim() && onLine) onLine(JSON.parse(rest));
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks) });
      });
    });
    if (body && typeof body !== "string" && !Buffer.isBuffer(body)) {
      body.on("error", (error) => request.destroy(error));
      body.pipe(request);
    } else {
      request.end(body);
    }
  });
}

/**
 * The same for answers that are one JSON value; throws on a status of 400 and above, except 404, which is undefined.
 * @param {Engine} engine
 * @param {string} method
 * @param {string} target
 * @param {unknown} [value] sent as JSON
 * @param {number} [stallMs]
 */
export async function askEngine(engine, method, target, value, stallMs = 60_000) {
  const sent =
    value === undefined
      ? {}
      : { body: JSON.stringify(value), headers: { "content-type": "application/json" } };
  const { status, body } = await callEngine(engine, method, target, { ...sent, stallMs });
  if (status === 404) return undefined;
  const text = body.toString("utf8");
  if (status >= 400) throw new Error(`engine answered ${status} to ${method} ${target}: ${text.trim()}`);
  return text ? JSON.parse(text) : {};
}

/**
 * Whether an engine answers there. `denied`: the socket exists, and this user may not open it.
 * @param {Engine} engine
 * @returns {Promise<{ answers: true, version: string } | { answers: false, denied: boolean, why: string }>}
 */
export async function pingEngine(engine, deadlineMs = 3_000) {
  try {
    const { status } = await callEngine(engine, "GET", "/_ping", { stallMs: deadlineMs });
    if (status !== 200) return { answers: false, denied: false, why: `it answered ${status} to /_ping` };
    const { body } = await callEngine(engine, "GET", "/version", { stallMs: deadlineMs });
    return { answers: true, version: JSON.parse(body.toString("utf8")).Version ?? "of unknown version" };
  } catch (error) {
    const why = error.errors?.[0]?.message ?? error.message;
    return { answers: false, denied: error.code === "EACCES" || error.code === "EPERM", why };
  }
}
