import type { Row } from "./scenario.ts";

const columns = ["", "ours", "baseline", "", "ratio", "samples", "aim", ""] as const;
const rightAligned = new Set([1, 2, 4, 5]);

export function tableText(rows: readonly Row[]): string {
  const cells = [[...columns], ...rows.map(cellsOf)];
  const widths = columns.map((_, column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)));
  return cells
    .map((line) =>
      line
        .map((cell, column) => {
          const width = widths[column] ?? 0;
          return rightAligned.has(column) ? cell.padStart(width) : cell.padEnd(width);
        })
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function cellsOf({ metric, unit, ours, baseline, baselineName, ratio, samples, aim }: Row): string[] {
  return [
    metric,
    `${short(ours)} ${unit}`,
    `${short(baseline)} ${unit}`,
    baselineName,
    `${short(ratio)}×`,
    `${samples.ours} / ${samples.baseline}`,
    aim?.text ?? "",
    aim === undefined ? "" : aim.met ? "met" : "MISSED",
  ];
}

/** Three digits: more would be noise. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return "∞";
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : 2);
}
