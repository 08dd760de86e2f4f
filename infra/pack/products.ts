import { RECIPE_FILES } from "../sandbox/recipe.mjs";

/** The published packages, each one tarball that needs no other package of Berth's. */
export interface Product {
  readonly name: string;
  /** The workspace package that it is; its README goes with it. */
  readonly source: string;
  /** As `entries` of `BundleOptions`. */
  readonly entries: Readonly<Record<string, string>>;
  /** npm packages that its users install with it. Everything else is bundled, in the versions that our tests ran with. */
  readonly external: readonly string[];
  /** The entry point for `import`, with types. */
  readonly library?: string;
  /** The entry point of the command that has the product's name. */
  readonly command?: string;
  /** Files that the code opens, in the place that they have in the repository. */
  readonly files: readonly string[];
  /** Folders of npm packages that the code asks for by `import.meta.resolve`, and the package that depends on them. */
  readonly vendor: Readonly<Record<string, string>>;
}

const scripts = "packages/ledger/lua";

export const products: readonly Product[] = [
  {
    name: "@berth/protocol",
    source: "packages/protocol",
    entries: { "packages/protocol/dist/index": "packages/protocol/src/index.ts" },
    // Its users write schemas with the same zod, and its types name zod's.
    external: ["zod"],
    library: "packages/protocol/dist/index",
    files: [],
    vendor: {},
  },
  {
    name: "@berth/client",
    source: "packages/client",
    entries: { "packages/client/dist/index": "packages/client/src/index.ts" },
    external: ["zod"],
    library: "packages/client/dist/index",
    files: [scripts],
    vendor: {},
  },
  {
    name: "berth",
    source: "apps/cli",
    entries: {
      "infra/setup/packaged": "infra/setup/packaged.mjs",
      "apps/cli/dist/main": "apps/cli/src/main.ts",
      "apps/cli/dist/local/guard": "apps/cli/src/local/guard.ts",
      "apps/worker/dist/main": "apps/worker/src/main.ts",
      "apps/gateway/dist/main": "apps/gateway/src/main.ts",
    },
    external: [],
    command: "infra/setup/packaged",
    files: [
      scripts,
      "packages/init/Makefile",
      "packages/init/c",
      "packages/init/build/init",
      ...RECIPE_FILES.map((file) => `infra/sandbox/${file}`),
      // The manifests are there because their versions are read.
      "apps/cli/package.json",
      "apps/worker/package.json",
    ],
    vendor: { "@bull-board/ui": "apps/gateway" },
  },
];
