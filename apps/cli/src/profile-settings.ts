import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { ceilingFields, layerChoices, nearest, profileFields } from "@berth/protocol";
import { parse } from "yaml";
import { UsageError } from "./complaint.ts";

export type Settings = Record<string, unknown>;

const envPrefix = "env.";
const fields = [...profileFields, ...ceilingFields];

/** Sets each `FIELD=VALUE`. Separate the values of a list by commas; write an environment variable as `env.NAME=VALUE`. */
export function withAssignments(settings: Settings, texts: readonly string[]): Settings {
  return texts.reduce((all, text) => {
    const at = text.indexOf("=");
    if (at <= 0)
      throw new UsageError(`${text} is not FIELD=VALUE`, [
        "such as limits.memoryBytes=1g; docs/profiles.md lists the fields",
      ]);
    const [path, value] = [text.slice(0, at), text.slice(at + 1)];
    return withField(all, path, valueFor(path, value));
  }, settings);
}

/** Removes fields. */
export function withoutFields(settings: Settings, paths: readonly string[]): Settings {
  return paths.reduce((all, path) => {
    valueFor(path, "");
    return withField(all, path, undefined);
  }, settings);
}

/** Reads a whole layer from YAML or JSON. */
export function settingsIn(directory: string, file: string): Promise<Settings> {
  return fieldsIn(directory, file, "it is not a layer; docs/profiles.md has an example");
}

/** Reads names and values from YAML or JSON. `otherwise` is the error for any other content. */
export async function fieldsIn(directory: string, file: string, otherwise: string): Promise<Settings> {
  const text = await readFile(resolve(directory, file), "utf8");
  let content: unknown;
  try {
    content = parse(text) ?? {};
  } catch (error) {
    throw new UsageError(`${file}: ${(error as Error).message.split("\n", 1)[0]}`);
  }
  if (typeof content !== "object" || content === null || Array.isArray(content))
    throw new UsageError(`${file}: ${otherwise}`);
  return content as Settings;
}

function withField(settings: Settings, path: string, value: unknown): Settings {
  const [name = "", inner] = path.startsWith(envPrefix)
    ? ["env", path.slice(envPrefix.length)]
    : path.split(".");
  if (inner === undefined) return withEntry(settings, name, value);
  const group = withEntry((settings[name] ?? {}) as Settings, inner, value);
  return withEntry(settings, name, Object.keys(group).length === 0 ? undefined : group);
}

function withEntry(settings: Settings, name: string, value: unknown): Settings {
  const { [name]: _, ...rest } = settings;
  return value === undefined ? rest : { ...rest, [name]: value };
}

/** Converts text to the field's type. Text that does not convert stays: validating the layer reports what is allowed. */
function valueFor(path: string, text: string): unknown {
  if (isChoice(path) || path.startsWith(envPrefix)) return text;
  const field = fields.find((one) => one.path === path);
  if (!field) throw unknownField(path);
  const candidates = [text, ...inJson(text), text.split(",").filter((one) => one !== ""), Number(text)];
  return candidates.find((one) => fits(field, one)) ?? text;
}

function isChoice(path: string): boolean {
  return layerChoices.some((one) => one === path);
}

function fits({ schema }: (typeof fields)[number], value: unknown): boolean {
  return schema.safeParse(value).success;
}

function inJson(text: string): unknown[] {
  try {
    return [JSON.parse(text)];
  } catch {
    return [];
  }
}

function unknownField(path: string): UsageError {
  const known = [...fields.map((one) => one.path), ...layerChoices];
  const meant = nearest(path, known);
  return new UsageError(`a profile has no field ${path}`, [
    meant === undefined ? "docs/profiles.md lists them" : `did you mean ${meant}?`,
  ]);
}
