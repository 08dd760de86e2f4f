import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";

/** The one package that may import each vendor, or anything of a vendor's scope. Tests and benchmarks are outside the rule: they hold the baselines. */
export const vendorOwners: Readonly<Record<string, string>> = {
  bullmq: "@berth/ledger",
  ioredis: "@berth/redis",
  dockerode: "@berth/sandbox",
  fastify: "@berth/gateway",
  "tar-stream": "@berth/tar",
  "prom-client": "@berth/service",
  "@opentelemetry": "@berth/service",
  "@modelcontextprotocol": "@berth/mcp",
};

/** What each package may import of ours. A package that is not here may import nothing of ours. */
export const directions: Readonly<Record<string, readonly string[]>> = {
  "@berth/protocol": [],
  "@berth/init": [],
  "@berth/sandbox": ["@berth/protocol", "@berth/init"],
  "@berth/scrub": [],
  "@berth/secrets": ["@berth/protocol"],
  "@berth/tar": ["@berth/protocol"],
  "@berth/egress": ["@berth/protocol"],
  "@berth/jobs": ["@berth/protocol", "@berth/sandbox", "@berth/tar"],
  "@berth/tenancy": ["@berth/protocol"],
  "@berth/redis": ["@berth/protocol"],
  "@berth/ledger": ["@berth/protocol", "@berth/redis"],
  "@berth/client": ["@berth/protocol", "@berth/redis", "@berth/ledger", "@berth/secrets"],
  "@berth/worker": [
    "@berth/protocol",
    "@berth/redis",
    "@berth/ledger",
    "@berth/tenancy",
    "@berth/jobs",
    "@berth/sandbox",
    "@berth/scrub",
    "@berth/secrets",
    "@berth/egress",
    "@berth/service",
  ],
  "@berth/engine-proxy": ["@berth/protocol", "@berth/sandbox", "@berth/service"],
  "@berth/service": [],
  "@berth/mcp": ["@berth/protocol"],
  "@berth/gateway": [
    "@berth/protocol",
    "@berth/redis",
    "@berth/ledger",
    "@berth/client",
    "@berth/secrets",
    "@berth/egress",
    "@berth/service",
    "@berth/mcp",
  ],
  "@berth/cli": [
    "@berth/protocol",
    "@berth/redis",
    "@berth/sandbox",
    "@berth/secrets",
    "@berth/tar",
    "@berth/client",
    "@berth/mcp",
    "@berth/worker",
    "@berth/gateway",
  ],
};

/** Packages that may import nothing from outside but this. */
export const pure: Readonly<Record<string, readonly string[]>> = {
  "@berth/protocol": ["zod"],
  "@berth/init": [],
};

/** Where a package may import only this of another, which loads no driver. */
export const onlyModules: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "@berth/jobs": { "@berth/sandbox": "@berth/sandbox/port" },
  "@berth/engine-proxy": { "@berth/sandbox": "@berth/sandbox/container" },
};

export interface PackageSources {
  readonly name: string;
  readonly dependencies: readonly string[];
  /** By path; the module names it imports, relative ones included. */
  readonly imports: ReadonlyMap<string, readonly string[]>;
  /** Paths of files that read the environment. */
  readonly environmentReaders: readonly string[];
  /** By path: the variables of Berth's that a file reads, from any object. */
  readonly variableReads: ReadonlyMap<string, readonly string[]>;
  /** Paths of files that spell a key of Redis. */
  readonly keySpellers: readonly string[];
}

export async function readPackages(root: string): Promise<PackageSources[]> {
  const packages: PackageSources[] = [];
  for (const group of ["apps", "packages"]) {
    for (const directory of await readdir(join(root, group))) {
      // The Python client has rules of its own: packages/client-python/tests/test_parts.py.
      if (!existsSync(join(root, group, directory, "package.json"))) continue;
      packages.push(await readPackage(join(root, group, directory), `${group}/${directory}`));
    }
  }
  return packages;
}

async function readPackage(path: string, shownAs: string): Promise<PackageSources> {
  const manifest = JSON.parse(await readFile(join(path, "package.json"), "utf8"));
  const imports = new Map<string, string[]>();
  const environmentReaders: string[] = [];
  const variableReads = new Map<string, readonly string[]>();
  const keySpellers: string[] = [];
  for (const entry of await readdir(join(path, "src"), { recursive: true })) {
    if (!entry.endsWith(".ts")) continue;
    const text = await readFile(join(path, "src", entry), "utf8");
    imports.set(`${shownAs}/src/${entry}`, importsOf(text));
    if (/\bredisKeys\b/.test(text)) keySpellers.push(`${shownAs}/src/${entry}`);
    if (/process\.env\b/.test(text)) environmentReaders.push(`${shownAs}/src/${entry}`);
    const read = variablesRead(text);
    if (read.length > 0) variableReads.set(`${shownAs}/src/${entry}`, read);
  }
  const dependencies = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
  return { name: manifest.name, dependencies, imports, environmentReaders, variableReads, keySpellers };
}

export function importsOf(source: string): string[] {
  const statement = /^(?:import|export)\b[^;"'`]*?\bfrom\s*["']([^"']+)["']/gm;
  const bare = /^import\s*["']([^"']+)["']/gm;
  const dynamic = /\bimport\s*\(\s*["']([^"']+)["']/g;
  return [statement, bare, dynamic].flatMap((form) =>
    [...source.matchAll(form)].map((match) => match[1] ?? ""),
  );
}

/**
 * The variables named `BERTH_…` that a source reads: as a member (`config.BERTH_LOG`, `env["BERTH_LOG"]`) or by taking an object
 * apart (`{ BERTH_LOG: level }`). Messages, comments, schemas and the environment of a child only name or set them.
 */
export function variablesRead(source: string): string[] {
  return source.includes("BERTH_") ? readsIn({ ...parseAst(source, { lang: "ts" }) }) : [];
}

interface SyntaxNode {
  readonly type?: string;
  readonly [part: string]: unknown;
}

function readsIn(node: SyntaxNode): string[] {
  const parts = Object.values(node).flat() as unknown[];
  const within = parts.filter((part): part is SyntaxNode => typeof part === "object" && part !== null);
  return [...namesRead(node).filter((name) => name.startsWith("BERTH_")), ...within.flatMap(readsIn)];
}

function namesRead({ type, property, properties }: SyntaxNode): string[] {
  if (type === "MemberExpression") return [nameOf(property as SyntaxNode)];
  if (type !== "ObjectPattern") return [];
  return (properties as SyntaxNode[]).map(({ key }) => nameOf((key ?? {}) as SyntaxNode));
}

function nameOf({ name, value }: SyntaxNode): string {
  return String(name ?? value);
}

/** Every breach of the rules, as a sentence. */
export function breaches(packages: readonly PackageSources[]): string[] {
  return packages.flatMap((one) => [
    ...manifestBreaches(one),
    ...sourceBreaches(one),
    ...environmentBreaches(one),
    ...keyBreaches(one),
  ]);
}

function manifestBreaches({ name, dependencies }: PackageSources): string[] {
  return dependencies.flatMap((dependency) => complaint(name, dependency, `${name}'s package.json`));
}

function sourceBreaches({ name, imports, dependencies }: PackageSources): string[] {
  const found: string[] = [];
  for (const [path, modules] of imports) {
    for (const module of modules) {
      if (module.startsWith(".")) {
        if (!module.endsWith(".ts")) found.push(`${path} imports ${module} without its extension`);
        continue;
      }
      if (module.startsWith("node:")) continue;
      const dependency = packageOf(module);
      found.push(...complaint(name, dependency, path));
      const only = onlyModules[name]?.[dependency];
      if (only !== undefined && module !== only)
        found.push(`${path} imports ${module}, but ${name} may import only ${only}`);
      if (!dependencies.includes(dependency))
        found.push(`${path} imports ${dependency}, which ${name} does not declare`);
    }
  }
  return found;
}

function complaint(name: string, dependency: string, where: string): string[] {
  const found: string[] = [];
  const owner = vendorOwners[dependency] ?? vendorOwners[dependency.split("/", 1)[0] ?? ""];
  if (owner !== undefined && owner !== name)
    found.push(`${where} uses ${dependency}, which only ${owner} may`);
  if (dependency.startsWith("@berth/") && !directions[name]?.includes(dependency)) {
    found.push(`${where} uses ${dependency}, against the direction of dependencies`);
  }
  const allowed = pure[name];
  if (allowed && !dependency.startsWith("@berth/") && !allowed.includes(dependency)) {
    found.push(`${where} uses ${dependency}, but ${name} imports only ${allowed.join(", ") || "nothing"}`);
  }
  return found;
}

/** What is in Redis is the ledger's: who may not spell a key can run no command on it. */
function keyBreaches({ name, keySpellers }: PackageSources): string[] {
  if (["@berth/protocol", "@berth/redis", "@berth/ledger"].includes(name)) return [];
  return keySpellers.map((path) => `${path} spells a key of Redis, which only the ledger may`);
}

function environmentBreaches({ environmentReaders, variableReads }: PackageSources): string[] {
  const elsewhere = (path: string) => !/^apps\/[^/]+\/src\/config\.ts$/.test(path);
  return [
    ...environmentReaders
      .filter(elsewhere)
      .map((path) => `${path} reads the environment, which only an app's config.ts may`),
    ...[...variableReads]
      .filter(([path]) => elsewhere(path))
      .map(([path, names]) => `${path} reads ${names.join(", ")}, which only an app's config.ts may`),
  ];
}

function packageOf(module: string): string {
  return module.split("/", module.startsWith("@") ? 2 : 1).join("/");
}
