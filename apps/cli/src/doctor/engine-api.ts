import http from "node:http";
import https from "node:https";

const deadlineMs = 10_000;

/** The engine's own report. The sandbox driver passes on only the part that it needs. */
export function askEngine(host: string | undefined, path: string): Promise<Record<string, unknown>> {
  const address = host ?? "unix:///var/run/docker.sock";
  const url = address.startsWith("unix://") ? undefined : new URL(address.replace(/^tcp:/, "http:"));
  const where = url
    ? { host: url.hostname, port: url.port || "2375" }
    : { socketPath: address.slice("unix://".length) };
  const { request } = url?.protocol === "https:" ? https : http;
  return new Promise((resolve, reject) => {
    const call = request({ ...where, path, agent: false, timeout: deadlineMs }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        try {
          resolve(JSON.parse(Buffer.concat(chunks).toString()));
        } catch (error) {
          reject(error);
        }
      });
    });
    call.on("timeout", () => call.destroy(new Error(`no answer to ${path}`)));
    call.on("error", reject);
    call.end();
  });
}
