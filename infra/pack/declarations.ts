import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import {
  type DeclarationModule,
  type Elsewhere,
  readDeclarations,
  type Statement,
} from "./declaration-module.ts";

interface Kept {
  readonly statements: Set<Statement>;
  /** Keyed by the name within the file. */
  readonly imports: Map<string, Elsewhere>;
  /** Keyed by the exported name, without names that are exported where they are declared. */
  readonly exports: Map<string, string | Elsewhere>;
  /** Keyed by the text that it replaces. */
  readonly inline: Map<string, Elsewhere>;
}

/**
 * The declarations that can be reached from an entry, as a tree of files. Only what is reached is written: the rest of a
 * workspace package's declarations names packages that the tarball does not depend on. The tools that put declarations
 * into one file need an API that TypeScript 7 does not have.
 */
export class Declarations {
  readonly #indexOf: ReadonlyMap<string, string>;
  readonly #modules = new Map<string, DeclarationModule>();
  readonly #kept = new Map<string, Kept>();
  readonly #external = new Map<string, string>();

  /** `indexOf`: the entry's declarations of each workspace package. */
  constructor(indexOf: ReadonlyMap<string, string>) {
    this.#indexOf = indexOf;
  }

  /** The npm packages that the declarations import, each with a file that does. */
  get external(): ReadonlyMap<string, string> {
    return this.#external;
  }

  /** Keeps all that a file exports, and what that needs. */
  async keepAll(file: string): Promise<void> {
    for (const name of (await this.#module(file)).exported.keys()) await this.#keepExport(file, name);
  }

  /** `place` gives a file its new path. */
  async write(place: (file: string) => string): Promise<void> {
    for (const [file, kept] of this.#kept) {
      const to = place(file);
      await mkdir(dirname(to), { recursive: true });
      await writeFile(
        to,
        textOf(kept, (from) => (from.startsWith("/") ? between(to, place(from)) : from)),
      );
    }
  }

  async #keepExport(file: string, name: string): Promise<void> {
    const { exports } = this.#keptOf(file);
    const { exported, declared } = await this.#module(file);
    const target = exported.get(name);
    if (target === undefined) throw new Error(`${file} does not export ${name}`);
    if (typeof target === "string") {
      if (name !== target || !declared.get(target)?.every((one) => one.isExported)) exports.set(name, target);
      await this.#keepInside(file, target);
    } else if (!exports.has(name)) {
      exports.set(name, target);
      exports.set(name, await this.#keepElsewhere(file, target));
    }
  }

  async #keepInside(file: string, name: string): Promise<void> {
    const { imported, declared } = await this.#module(file);
    const { statements, imports, inline } = this.#keptOf(file);
    const elsewhere = imported.get(name);
    if (elsewhere !== undefined && !imports.has(name)) {
      imports.set(name, elsewhere);
      imports.set(name, await this.#keepElsewhere(file, elsewhere));
    }
    for (const statement of declared.get(name) ?? []) {
      if (statements.has(statement)) continue;
      statements.add(statement);
      for (const mentioned of statement.names) await this.#keepInside(file, mentioned);
      for (const { text, ...target } of statement.inline)
        inline.set(text, await this.#keepElsewhere(file, target));
    }
  }

  /** Keeps a declaration in the file that declares it, not in the index files that export it again. */
  async #keepElsewhere(file: string, { from, name }: Elsewhere, user = file): Promise<Elsewhere> {
    const target = from.startsWith(".")
      ? join(dirname(file), from).replace(/\.ts$/, ".d.ts")
      : this.#indexOf.get(from);
    if (target === undefined) {
      this.#external.set(from, user);
      return { from, name };
    }
    const exported = (await this.#module(target)).exported.get(name);
    if (typeof exported === "object") return this.#keepElsewhere(target, exported, user);
    await this.#keepExport(target, name);
    return { from: target, name };
  }

  #keptOf(file: string): Kept {
    const none = {
      statements: new Set<Statement>(),
      imports: new Map(),
      exports: new Map(),
      inline: new Map(),
    };
    const kept = this.#kept.get(file) ?? none;
    this.#kept.set(file, kept);
    return kept;
  }

  async #module(file: string): Promise<DeclarationModule> {
    const module = this.#modules.get(file) ?? readDeclarations(await readFile(file, "utf8"));
    this.#modules.set(file, module);
    return module;
  }
}

function textOf({ statements, imports, exports, inline }: Kept, specifier: (from: string) => string): string {
  const lines = [...imports].map(
    ([inside, { from, name }]) => `import type { ${renamed(name, inside)} } from "${specifier(from)}";`,
  );
  for (const statement of statements) {
    let { text } = statement;
    for (const one of statement.inline) {
      const target = inline.get(one.text);
      if (target) text = text.replaceAll(one.text, `import("${specifier(target.from)}").${target.name}`);
    }
    lines.push(text);
  }
  for (const [outside, target] of exports)
    lines.push(
      typeof target === "string"
        ? `export { ${renamed(target, outside)} };`
        : `export { ${renamed(target.name, outside)} } from "${specifier(target.from)}";`,
    );
  // Without an export a file would be a script, and its names global.
  return `${lines.join("\n")}\nexport {};\n`;
}

function renamed(name: string, as: string): string {
  return name === as ? name : `${name} as ${as}`;
}

/** The specifier by which one file imports another: relative, with the extension of the code beside it. */
function between(file: string, other: string): string {
  const path = relative(dirname(file), other).replace(/\.d\.ts$/, ".js");
  return path.startsWith(".") ? path : `./${path}`;
}
