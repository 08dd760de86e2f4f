/** As much of JSON Schema as zod makes of the gateway's requests. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
}

/** Every field of an object, those of objects inside behind their names and a dot, of lists behind `[]`. */
export function fieldTable(schema: JsonSchema): string {
  const rows = fieldRows(schema, "");
  return ["| field | what it is | |", "|---|---|---|", ...rows].join("\n");
}

/** A schema with a form for each `kind` has a table for each; any other has one. */
export function fieldSection(name: string, schema: JsonSchema): string {
  const forms = formsOf(schema);
  if (forms.length < 2 || !forms.every((form) => kindOf(form) !== undefined))
    return `### ${name}\n\n${fieldTable(schema)}\n`;
  const tables = forms.map((form) => `\`"kind": "${kindOf(form)}"\`\n\n${fieldTable(form)}\n`);
  return `### ${name}\n\n${tables.join("\n")}`;
}

function fieldRows(schema: JsonSchema, above: string): string[] {
  const needed = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const row = `| \`${above}${name}\` | ${cell(typeText(field))} | ${cell(remark(field, needed.has(name)))} |`;
    const inner = field.items ?? field;
    const isNamed = field.$ref !== undefined || inner.$ref !== undefined;
    return [row, ...(isNamed ? [] : fieldRows(inner, `${above}${name}${field.items ? "[]" : ""}.`))];
  });
}

/** In words, with its bounds. */
export function typeText(schema: JsonSchema): string {
  const { type, enum: values, items, additionalProperties: rest, maxLength, maxItems } = schema;
  if (schema.$ref !== undefined) return `[${nameIn(schema.$ref)}](#${nameIn(schema.$ref).toLowerCase()})`;
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (values) return values.map((value) => `\`${JSON.stringify(value)}\``).join(", ");
  const forms = formsOf(schema);
  const kinds = new Set(forms.map(kindOf));
  if (!kinds.has(undefined)) return `a request of the kind ${[...kinds].join(", ")}`;
  if (forms.length > 1) return forms.map(typeText).join(", or ");
  if (type === "array") return `list of ${typeText(items ?? {})}${maxItems ? `, at most ${maxItems}` : ""}`;
  if (type === "object" && typeof rest === "object" && rest.type) return `names to ${typeText(rest)}`;
  if (type === "integer" || type === "number") return `${type}${bounds(schema)}`;
  return `${type ?? "any value"}${maxLength ? `, at most ${maxLength} characters` : ""}`;
}

function bounds({ minimum, exclusiveMinimum, maximum }: JsonSchema): string {
  const least = minimum ?? (exclusiveMinimum === 0 ? 1 : exclusiveMinimum);
  const from = least === undefined || least <= Number.MIN_SAFE_INTEGER ? "" : ` from ${least}`;
  return maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER ? from : `${from} to ${maximum}`;
}

function remark({ default: fallback, description = "" }: JsonSchema, isNeeded: boolean): string {
  const how = fallback !== undefined ? `default \`${JSON.stringify(fallback)}\`` : isNeeded ? "needed" : "";
  return [how, description].filter((part) => part !== "").join("; ");
}

/** Of a union, also of unions inside it. */
function formsOf(schema: JsonSchema): readonly JsonSchema[] {
  return (schema.oneOf ?? schema.anyOf)?.flatMap(formsOf) ?? [schema];
}

function kindOf({ properties }: JsonSchema): string | undefined {
  const kind = properties?.kind?.const;
  return typeof kind === "string" ? kind : undefined;
}

export function nameIn(reference: string): string {
  return reference.replace("#/components/schemas/", "");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}
