/**
 * Packs what is published into tarballs that each install alone.
 *
 *   npm run pack                      into dist/
 *   npm run pack -- --out DIRECTORY
 */
import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { repoRoot } from "../setup/places.mjs";
import { products } from "./products.ts";
import { stage } from "./stage.ts";

const { values } = parseArgs({ options: { out: { type: "string", default: join(repoRoot, "dist") } } });
const out = resolve(values.out);
await mkdir(out, { recursive: true });
for (const product of products) {
  const directory = join(repoRoot, ".berth", "pack", product.name);
  await stage(product, directory);
  // The scripts of a manifest do not run: there are none.
  const args = ["pack", "--json", "--pack-destination", out];
  const { stdout } = await promisify(execFile)("npm", args, { cwd: directory });
  const [{ filename, size, entryCount }] = JSON.parse(stdout);
  console.log(`${join(out, filename)}  ${Math.ceil(size / 1024)} KiB, ${entryCount} files`);
}
