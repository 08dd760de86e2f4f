import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { settingNames } from "@berth/protocol";
import { expect, test } from "vitest";
import { environment as cli } from "../apps/cli/src/config.ts";
import { environment as engineProxy } from "../apps/engine-proxy/src/config.ts";
import { environment as gateway } from "../apps/gateway/src/config.ts";
import { environment as worker } from "../apps/worker/src/config.ts";
import { variablesRead } from "./boundaries.ts";
import { configPage } from "./config-page.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

test("docs/configuration.md equals the schemas", async () => {
  const page = await readFile(new URL("../docs/configuration.md", import.meta.url), "utf8");
  expect(page).toBe(configPage());
});

test("every variable of an app's schema reaches its configuration", async () => {
  for (const [app, { shape }] of Object.entries({ cli, "engine-proxy": engineProxy, gateway, worker })) {
    const source = await readFile(join(root, "apps", app, "src/config.ts"), "utf8");
    const read = new Set(variablesRead(source));
    const ofBerth = Object.keys(shape).filter((name) => name.startsWith("BERTH_"));
    expect(
      ofBerth.filter((name) => !read.has(name)),
      app,
    ).toEqual([]);
  }
});

test("every variable that a program or a Compose file reads is known to all of them, and no other", async () => {
  const read = new Set([cli, engineProxy, gateway, worker].flatMap(({ shape }) => Object.keys(shape)));
  const files = ["docker-compose.yml"];
  for (const folder of ["infra/compose", "infra/apps"])
    for (const entry of await readdir(join(root, folder), { recursive: true, withFileTypes: true }))
      if (entry.isFile() && !entry.parentPath.includes("node_modules"))
        files.push(join(entry.parentPath, entry.name).slice(root.length));
  for (const file of files) {
    const text = await readFile(join(root, file), "utf8");
    for (const [name] of text.matchAll(/\bBERTH_[A-Z_]+\b/g)) read.add(name);
  }
  const named = [...read].filter((name) => name.startsWith("BERTH_"));
  expect(new Set(settingNames)).toEqual(new Set(named));
});
