import { chmod, cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { NODE_MAJOR, repoRoot } from "../setup/places.mjs";
import { bundle } from "./bundle.ts";
import { licences } from "./licences.ts";
import type { Product } from "./products.ts";
import { writeTypes } from "./types.ts";

/** The folder of a product as it will be in its tarball: manifest, README, licences, and `lib` with all that runs. */
export async function stage(product: Product, directory: string): Promise<void> {
  const lib = join(directory, "lib");
  await rm(directory, { recursive: true, force: true });
  await mkdir(lib, { recursive: true });
  const { bundled } = await bundle({ ...product, directory: lib });
  for (const path of product.files) await place(path, lib);
  for (const [name, user] of Object.entries(product.vendor)) await placeVendor(name, user, lib);
  if (product.library !== undefined) await writeTypes(product, lib);
  await writeFile(join(directory, "package.json"), `${JSON.stringify(await manifest(product), null, 2)}\n`);
  await writeFile(join(directory, "THIRD-PARTY-LICENSES"), await licences(bundled));
  await cp(join(repoRoot, "LICENSE"), join(directory, "LICENSE"));
  await cp(join(repoRoot, product.source, "README.md"), join(directory, "README.md"));
  if (product.command !== undefined) await chmod(join(lib, `${product.command}.js`), 0o755);
}

async function place(path: string, lib: string): Promise<void> {
  const target = join(lib, path);
  await mkdir(dirname(target), { recursive: true });
  if (basename(path) !== "package.json")
    return cp(join(repoRoot, path), target, {
      recursive: true,
      filter: (file) => !/\/fuzz[-a-z]*\.[ch]$/.test(file),
    });
  const { name, version, type } = JSON.parse(await readFile(join(repoRoot, path), "utf8"));
  await writeFile(target, `${JSON.stringify({ name, version, type })}\n`);
}

async function placeVendor(name: string, user: string, lib: string): Promise<void> {
  const resolve = createRequire(join(repoRoot, user, "package.json")).resolve;
  const source = dirname(resolve(`${name}/package.json`));
  for (const part of ["package.json", "dist"])
    await cp(join(source, part), join(lib, "vendor", name, part), {
      recursive: true,
      dereference: true,
      filter: (path) => !path.endsWith(".map"),
    });
}

async function manifest({ name, source, external, library, command }: Product): Promise<object> {
  const root = JSON.parse(await readFile(join(repoRoot, "package.json"), "utf8"));
  const own = JSON.parse(await readFile(join(repoRoot, source, "package.json"), "utf8"));
  const shared = { license: root.license, repository: { ...root.repository, directory: source } };
  return {
    ...{ name, version: root.version, description: own.description, ...shared },
    type: "module",
    engines: { node: `>=${NODE_MAJOR}` },
    ...(library === undefined
      ? {}
      : { exports: { ".": exportOf(library), "./package.json": "./package.json" } }),
    ...(command === undefined ? {} : { bin: { [name]: `lib/${command}.js` } }),
    files: ["lib", "THIRD-PARTY-LICENSES"],
    dependencies: Object.fromEntries(await Promise.all(external.map((one) => range(one)))),
  };
}

function exportOf(library: string): object {
  return { types: `./lib/${library}.d.ts`, default: `./lib/${library}.js` };
}

/** A version range that begins with the version that Berth's tests ran with. */
async function range(name: string): Promise<[name: string, range: string]> {
  const resolve = createRequire(join(repoRoot, "packages/protocol/package.json")).resolve;
  const { version } = JSON.parse(await readFile(resolve(`${name}/package.json`), "utf8"));
  return [name, `^${version}`];
}
