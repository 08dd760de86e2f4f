import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { repoRoot } from "../setup/places.mjs";
import { Declarations } from "./declarations.ts";
import type { Product } from "./products.ts";

/** Writes the declarations of a product's library beside its code. Throws when they name a package that the product does not depend on. */
export async function writeTypes(
  { name, library = "", entries, external }: Product,
  lib: string,
): Promise<void> {
  await emitted(async (root, indexOf) => {
    const declarations = new Declarations(indexOf);
    const entry = (entries[library] ?? "").replace(/\.ts$/, ".d.ts");
    await declarations.keepAll(join(root, entry));
    for (const [other, file] of declarations.external)
      if (!external.includes(other))
        throw new Error(`${relative(root, file)}: ${name} does not depend on ${other}, which its types name`);
    await declarations.write((file) => join(lib, relative(root, file).replace("/src/", "/dist/")));
  });
}

/** The packages whose declarations a library can name. */
const libraries = ["protocol", "redis", "ledger", "client"];

/** Their declarations without what is marked @internal, in a folder that is removed again. */
async function emitted(
  use: (root: string, indexOf: ReadonlyMap<string, string>) => Promise<void>,
): Promise<void> {
  // In the clone, so that @types are found from there.
  const root = await mkdtemp(join(repoRoot, ".berth", "declarations-"));
  try {
    const project = join(root, "tsconfig.json");
    const compilerOptions = {
      ...{ composite: false, declaration: true, declarationMap: false },
      ...{ emitDeclarationOnly: true, stripInternal: true },
      ...{ rootDir: repoRoot, outDir: root },
    };
    // By file: what is only found as a dependency in node_modules is not emitted.
    const include = libraries.map((one) => join(repoRoot, "packages", one, "src"));
    await writeFile(
      project,
      JSON.stringify({ extends: join(repoRoot, "tsconfig.base.json"), compilerOptions, include }),
    );
    await promisify(execFile)(join(repoRoot, "node_modules/.bin/tsc"), ["-p", project]);
    const indexes = libraries.map(
      (one) => [`@berth/${one}`, join(root, "packages", one, "src/index.d.ts")] as const,
    );
    await use(root, new Map(indexes));
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}
