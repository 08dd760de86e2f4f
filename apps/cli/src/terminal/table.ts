import { printable } from "./printable.ts";

/** Styles a cell; `row` is undefined for the header. */
export type Paint = (text: string, column: string, row?: number) => string;

/** Columns are as wide as their content; the last one has no limit. Numbers align right. */
export function table(
  header: readonly string[],
  rows: readonly (readonly (string | number)[])[],
  paint: Paint = (text) => text,
): string {
  const cells = rows.map((row) =>
    row.map((cell) => (typeof cell === "number" ? String(cell) : printable(cell))),
  );
  const widths = header.map((title, column) =>
    Math.max(title.length, ...cells.map((row) => width(row[column] ?? ""))),
  );
  const isNumber = header.map(
    (_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === "number"),
  );
  const line = (row: readonly string[], index?: number) =>
    row
      .map((cell, column) => {
        const space = " ".repeat(Math.max(0, (widths[column] ?? 0) - width(cell)));
        const painted = paint(cell, header[column] ?? "", index);
        return isNumber[column] ? space + painted : painted + space;
      })
      .join("  ")
      .trimEnd();
  return [line(header), ...cells.map(line)].join("\n");
}

function width(text: string): number {
  return [...text].length;
}
