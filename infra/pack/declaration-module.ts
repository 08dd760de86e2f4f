import { parseAst } from "rolldown/parseAst";

/** A name in another file or package. */
export interface Elsewhere {
  readonly from: string;
  readonly name: string;
}

/** `import("…").Name` within a statement. */
export interface InlineImport extends Elsewhere {
  readonly text: string;
}

export interface Statement {
  readonly text: string;
  readonly isExported: boolean;
  /** Names that it refers to, type parameters of its own included. */
  readonly names: ReadonlySet<string>;
  readonly inline: readonly InlineImport[];
}

/** One file of declarations as TypeScript emits them: imports, exports and declarations, each at the top level. */
export interface DeclarationModule {
  /** Declarations by name; several for a function with overloads. */
  readonly declared: ReadonlyMap<string, readonly Statement[]>;
  readonly imported: ReadonlyMap<string, Elsewhere>;
  /** By exported name: the name within the file, or a declaration of another file that this one exports again. */
  readonly exported: ReadonlyMap<string, string | Elsewhere>;
}

/** The fields of a syntax tree that this module reads. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

export function readDeclarations(text: string): DeclarationModule {
  const declared = new Map<string, Statement[]>();
  const imported = new Map<string, Elsewhere>();
  const exported = new Map<string, string | Elsewhere>();
  let endOfLast = 0;
  for (const node of parseAst(text, { lang: "dts" }).body as unknown as Node[]) {
    // The range includes the comment before the statement.
    const whole = text.slice(endOfLast, node.end).trim();
    endOfLast = node.end;
    const from = (node.source as { value: string } | null | undefined)?.value;
    const specifiers = (node.specifiers ?? []) as Node[];
    if (node.type === "ImportDeclaration" && from !== undefined) {
      for (const one of specifiers) imported.set(nameOf(one.local), { from, name: nameOf(one.imported) });
      continue;
    }
    for (const one of specifiers) {
      const inside = nameOf(one.local);
      exported.set(nameOf(one.exported), from === undefined ? inside : { from, name: inside });
    }
    const declaration = (node.declaration ?? node) as Node;
    const isExported = node.type === "ExportNamedDeclaration";
    const statement = { text: whole, isExported, ...mentions(declaration, text) };
    for (const name of declaredNames(declaration)) {
      declared.set(name, [...(declared.get(name) ?? []), statement]);
      if (isExported) exported.set(name, name);
    }
  }
  return { declared, imported, exported };
}

/** Of an identifier, or of a string that stands for one. `import * as x` and default imports are not made here. */
function nameOf(node: unknown): string {
  const { name } = (node ?? {}) as { name?: unknown };
  if (typeof name !== "string") throw new Error("only named imports and exports are understood");
  return name;
}

function declaredNames(declaration: Node): string[] {
  const { id, declarations } = declaration as unknown as { id?: unknown; declarations?: { id: unknown }[] };
  if (declarations) return declarations.map((one) => nameOf(one.id));
  return id ? [nameOf(id)] : [];
}

/** Where a declaration refers to another by its name. */
const references: Readonly<Record<string, string>> = {
  ClassDeclaration: "superClass",
  TSClassImplements: "expression",
  TSInterfaceHeritage: "expression",
  TSTypeQuery: "exprName",
  TSTypeReference: "typeName",
};

function mentions(node: Node, text: string): Pick<Statement, "names" | "inline"> {
  const names = new Set<string>();
  const inline: InlineImport[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit);
    if (typeof value !== "object" || value === null || !("type" in value)) return;
    const { type, start, ...fields } = value as Node;
    const name = leftmost(fields[references[type] ?? ""] ?? (fields.computed && fields.key));
    if (name !== undefined) names.add(name);
    if (type === "TSImportType") {
      const { value: from } = fields.source as { value: string };
      const qualifier = fields.qualifier as Node;
      inline.push({ text: text.slice(start, qualifier.end), from, name: nameOf(qualifier) });
    }
    Object.values(fields).forEach(visit);
  };
  visit(node);
  return { names, inline };
}

/** `a` of `a`, `a.b` and `a.b.c`, whether as a type or as a value. */
function leftmost(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { name, left, object } = value as { name?: unknown; left?: unknown; object?: unknown };
  return typeof name === "string" ? name : leftmost(left ?? object);
}
