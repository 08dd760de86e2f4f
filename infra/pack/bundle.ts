import { isBuiltin } from "node:module";
import { relative } from "node:path";
import { type OutputChunk, type Plugin, rolldown } from "rolldown";
import { repoRoot } from "../setup/places.mjs";

export interface BundleOptions {
  /** Source files by the path that each gets in the bundle, without its extension. */
  readonly entries: Readonly<Record<string, string>>;
  /** The output directory; empty or absent before. */
  readonly directory: string;
  /** npm packages that the bundle's users install; all others become part of it. */
  readonly external: readonly string[];
}

export interface Bundle {
  /** Folders of the npm packages that became part of it. */
  readonly bundled: readonly string[];
}

/** Optional halves of our dependencies: native accelerators, engines over ssh, BuildKit. They load with an empty module in their place. */
const leftOut = /^(@grpc\/grpc-js|@grpc\/proto-loader|cpu-features|msgpackr-extract|ssh2)$/;

/** Source files and what they import as a few files of plain JavaScript. Code that only some commands need is a file of its own. */
export async function bundle({ entries, directory, external }: BundleOptions): Promise<Bundle> {
  const build = await rolldown({
    cwd: repoRoot,
    input: { ...entries },
    platform: "node",
    resolve: { conditionNames: ["@berth/source", "node", "import", "default"] },
    external: (id) => isBuiltin(id) || external.includes(id),
    plugins: [withoutOptionals, inPlace],
    // Bull Board's eval is not reached: the gateway names the folder that it would look for.
    checks: { eval: false },
  });
  try {
    const { output } = await build.write({
      dir: directory,
      format: "esm",
      chunkFileNames: "chunks/[name]-[hash].js",
    });
    const chunks = output.filter((one): one is OutputChunk => one.type === "chunk");
    const folders = chunks.flatMap(({ moduleIds }) => moduleIds.flatMap((id) => packageFolder(id) ?? []));
    return { bundled: [...new Set(folders)].sort() };
  } finally {
    await build.close();
  }
}

const withoutOptionals: Plugin = {
  name: "without-optionals",
  resolveId: { filter: { id: leftOut }, handler: (id) => `\0without:${id}` },
  load: {
    filter: { id: /^\0without:/ },
    handler: () => ({ code: "module.exports = {};", moduleType: "js" }),
  },
};

const bundleRoot = "__BERTH_BUNDLE_ROOT__";

/**
 * A module finds its files (scripts of Redis, init, recipes) by its own URL. In the bundle that URL is where `tsc -b` would have
 * put it, with the bundle's folder in the repository's place: its files are put there too. What is asked for by
 * `import.meta.resolve` is beneath `vendor/`.
 */
const inPlace: Plugin = {
  name: "in-place",
  transform: {
    filter: { code: /import\.meta\.(url|resolve)/ },
    handler(code, id) {
      const path = relative(repoRoot, id).replace("/src/", "/dist/").replace(/\.ts$/, ".js");
      return code
        .replaceAll(/import\.meta\.resolve\("([^"]+)"\)/g, `new URL("vendor/$1", ${bundleRoot}).href`)
        .replaceAll("import.meta.url", `new URL(${JSON.stringify(path)}, ${bundleRoot}).href`);
    },
  },
  renderChunk(code, { fileName }) {
    if (!code.includes(bundleRoot)) return null;
    const up = "../".repeat(fileName.split("/").length - 1) || "./";
    return code.replaceAll(bundleRoot, `new URL("${up}", import.meta.url)`);
  },
};

/** The folder of the npm package that has a module. */
function packageFolder(id: string): string | undefined {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id.replace(/^\0/, ""))?.[0];
}
