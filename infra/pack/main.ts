/**
 * Packs what is published into tarballs that each install alone.
 *
 *   npm run pack                      into dist/
 *   npm run pack -- --out DIRECTORY
 *   npm run pack -- --only berth
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { repoRoot } from "../setup/places.mjs";
import { products } from "./products.ts";
import { stage } from "./stage.ts";

const { values } = parseArgs({
  options: {
    out: { type: "string", default: join(repoRoot, "dist") },
    only: { type: "string" },
  },
});
const out = resolve(values.out);
const chosen = products.filter(({ name }) => values.only === undefined || values.only === name);
if (chosen.length === 0)
  throw new Error(`--only is one of ${products.map(({ name }) => name).join(", ")}, not ${values.only}`);
await mkdir(out, { recursive: true });
for (const product of chosen) {
  const directory = await mkdtemp(join(tmpdir(), "berth-pack-"));
  try {
    await stage(product, directory);
    const args = ["pack", "--json", "--pack-destination", out];
    const { stdout } = await promisify(execFile)("npm", args, { cwd: directory });
    const [{ filename, size, entryCount }] = JSON.parse(stdout);
    console.log(`${join(out, filename)}  ${Math.ceil(size / 1024)} KiB, ${entryCount} files`);
  } finally {
    await rm(directory, { recursive: true });
  }
}
