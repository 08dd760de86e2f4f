import { printable } from "./printable.ts";

/** Columns as wide as they need to be; the last one unbounded. Numbers to the right. */
export function table(header: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const cells = rows.map((row) =>
    row.map((cell) => (typeof cell === "number" ? String(cell) : printable(cell))),
  );
  const widths = header.map((title, column) =>
    Math.max(title.length, ...cells.map((row) => width(row[column] ?? ""))),
  );
  const isNumber = header.map(
    (_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === "number"),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => {
        const space = " ".repeat(Math.max(0, (widths[column] ?? 0) - width(cell)));
        return isNumber[column] ? space + cell : cell + space;
      })
      .join("  ")
      .trimEnd();
  return [line(header), ...cells.map(line)].join("\n");
}

function width(text: string): number {
  return [...text].length;
}
