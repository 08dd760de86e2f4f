import { type LayerChange, layerChanges, type NamedLayer } from "@berth/protocol";
import type { StoredLayer } from "./door.ts";
import { spanText } from "./terminal/quantities.ts";
import { table } from "./terminal/table.ts";

/** One line per field that a layer sets. */
export function layerText({ layer, version, atMs, by, settings, problems = [] }: StoredLayer): string {
  const head = `${layer}  version ${version}, ${spanText(Date.now() - atMs)} ago by ${by}`;
  const lines = layerChanges({}, settings ?? {}).map(({ path, to }) => `  ${path} = ${valueText(to)}`);
  const unusable = problems.map((problem) => `  cannot be used: ${problem}`);
  return [head, ...(settings === null ? ["  removed"] : lines), ...unusable].join("\n");
}

export function changesText(changes: readonly LayerChange[]): string {
  if (changes.length === 0) return "nothing would change";
  return changes
    .flatMap(({ path, from, to }) => [
      ...(from === undefined ? [] : [`- ${path} = ${valueText(from)}`]),
      ...(to === undefined ? [] : [`+ ${path} = ${valueText(to)}`]),
    ])
    .join("\n");
}

/** Each history entry with its changes. */
export function historyText(entries: readonly StoredLayer[]): string {
  return table(
    ["VERSION", "AGE", "BY", "CHANGED"],
    entries.map(({ version, atMs, by, settings }, index) => [
      version,
      spanText(Date.now() - atMs),
      by,
      settings === null ? "removed" : changedText(entries[index + 1]?.settings ?? {}, settings),
    ]),
  );
}

function changedText(from: NamedLayer, to: NamedLayer): string {
  const changes = layerChanges(from, to);
  return changes.map((one) => `${one.path}=${one.to === undefined ? "" : valueText(one.to)}`).join(" ");
}

function valueText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
