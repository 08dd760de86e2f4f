import http from "node:http";

const DEFAULT_ADDRESS = "unix:///var/run/docker.sock";
const DEADLINE_MS = 5_000;

/**
 * The engine's description of itself and of this container.
 * @param {string | undefined} address in DOCKER_HOST's form
 * @param {string} container
 * @returns {Promise<{ machine: string, labels: Record<string, string> }>}
 */
export async function engineFacts(address, container) {
  const [info, facts] = await Promise.all([
    ask(address || DEFAULT_ADDRESS, "/info"),
    ask(address || DEFAULT_ADDRESS, `/containers/${encodeURIComponent(container)}/json`),
  ]);
  return { machine: info?.Name ?? "host", labels: facts?.Config?.Labels ?? {} };
}

/** The parsed answer; undefined for 404. */
function ask(address, target) {
  return new Promise((resolve, reject) => {
    const request = http.get({ ...whereIs(address), path: target, agent: false }, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        if (response.statusCode === 200) resolve(JSON.parse(text));
        else if (response.statusCode === 404) resolve(undefined);
        else reject(new Error(`the engine answered ${response.statusCode} to GET ${target}`));
      });
    });
    request.setTimeout(DEADLINE_MS, () => request.destroy(new Error(`no answer from ${address}`)));
    request.on("error", reject);
  });
}

function whereIs(address) {
  if (address.startsWith("unix://")) return { socketPath: address.slice("unix://".length) };
  const url = new URL(address.replace(/^tcp:/, "http:"));
  return { host: url.hostname, port: url.port || "2375" };
}
