import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connectRedis } from "@berth/redis";
import { describe, expect, test } from "vitest";
import { environment as proxySettings } from "../../apps/engine-proxy/src/config.ts";
import { environment as gatewaySettings } from "../../apps/gateway/src/config.ts";
import { environment as workerSettings } from "../../apps/worker/src/config.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Found out or set where the image starts: `infra/apps/start`, `infra/apps/Dockerfile`. */
const ofTheImage = {
  worker: ["BERTH_WORKER_ID", "BERTH_INIT"],
  gateway: ["BERTH_GATEWAY_HOST", "BERTH_GATEWAY_PORT"],
  /** Paths in the container. */
  proxy: ["BERTH_PROXY_ENGINE", "BERTH_PROXY_SOCKET"],
};

/** The names under a service's `environment`. */
async function namesIn(service: string, file = "docker-compose.yml"): Promise<string[]> {
  const text = await readFile(join(root, file), "utf8");
  const block = new RegExp(`^  ${service}:\\n((?:    .*\\n|\\n)*)`, "m").exec(text)?.[1] ?? "";
  const names = /^ {4}environment:\n((?: {6}.*\n)*)/m.exec(block)?.[1] ?? "";
  const found = [...names.matchAll(/^ {6}([A-Z_]+):/gm)].map((match) => match[1] ?? "");
  return found.filter(isNoFile);
}

/** Read where the image starts (infra/apps/start/secrets.mjs), or by the program itself: in the place of another setting. */
function isNoFile(name: string): boolean {
  return !name.endsWith("_FILE");
}

describe("settings in the compose file", () => {
  test("the compose file passes on every setting of workers", async () => {
    const known = Object.keys(workerSettings.shape).filter(isNoFile);
    expect([...(await namesIn("worker")), ...ofTheImage.worker].sort()).toEqual(known.sort());
  });

  test("the compose file passes on every setting of the gateway", async () => {
    const known = Object.keys(gatewaySettings.shape).filter(isNoFile);
    expect([...(await namesIn("gateway")), ...ofTheImage.gateway].sort()).toEqual(known.sort());
  });

  test("the compose file passes on every setting of the engine proxy", async () => {
    const known = Object.keys(proxySettings.shape);
    const names = await namesIn("engine-proxy", "infra/compose/engine-proxy.yml");
    expect([...names, ...ofTheImage.proxy].sort()).toEqual(known.sort());
  });
});

test("the images have every file that a package reads when it runs", async () => {
  const missing: string[] = [];
  for (const group of ["apps", "packages"]) {
    for (const name of await readdir(join(root, group))) {
      const file = join(root, group, name, "package.json");
      // The Python client is in no image.
      if (!existsSync(file)) continue;
      const manifest = JSON.parse(await readFile(file, "utf8"));
      for (const folder of ["lua", "static"]) {
        if (existsSync(join(root, group, name, folder)) && !manifest.files?.includes(folder))
          missing.push(`${group}/${name}/${folder}`);
      }
    }
  }
  expect(missing, "not among the `files` of its package.json").toEqual([]);
});

test("redis.conf keeps every write, bounds its memory and forgets nothing to make room", async () => {
  const folder = await mkdtemp(join(tmpdir(), "berth-conf-"));
  const socket = join(folder, "redis.sock");
  const own = ["--port", "0", "--unixsocket", socket, "--dir", folder];
  const server = spawn("redis-server", [join(root, "infra/redis/redis.conf"), ...own], { stdio: "ignore" });
  const redis = connectRedis({ url: `unix://${socket}`, role: "blocking" });
  try {
    const policy = await redis.config("GET", "maxmemory*", "appendonly", "appendfsync", "save");
    expect(policy).toEqual(expect.arrayContaining(["noeviction", "yes", "everysec", ""]));
    expect(policy).toEqual(expect.arrayContaining(["maxmemory", String(2 * 1024 ** 3)]));
  } finally {
    redis.disconnect();
    const gone = once(server, "exit");
    server.kill();
    await gone;
    await rm(folder, { recursive: true, force: true });
  }
});
