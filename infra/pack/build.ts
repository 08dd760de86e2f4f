/**
 * `npm run build`: `dist` of every package, and the command as its tarball has it. The latter is what `npm run berth` runs
 * for as long as no source is newer.
 */
import { spawnSync } from "node:child_process";
import { commandFolder } from "../setup/built-command.mjs";
import { repoRoot } from "../setup/places.mjs";
import { products } from "./products.ts";
import { stage } from "./stage.ts";

const turbo = ["node_modules/turbo/bin/turbo", "run", "build", "--output-logs=errors-only"];
const { status } = spawnSync(process.execPath, [...turbo, ...process.argv.slice(2)], {
  cwd: repoRoot,
  stdio: "inherit",
});
if (status !== 0) process.exit(status ?? 1);
for (const product of products.filter(({ command }) => command !== undefined))
  await stage(product, commandFolder(repoRoot));
