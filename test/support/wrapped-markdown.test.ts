import { expect, test } from "vitest";
import { wrappedMarkdown } from "./wrapped-markdown.ts";

const long = "word ".repeat(30).trim();

test("a generated page's paragraphs and list items are wrapped at 100 columns, list items with their indentation", () => {
  const lines = wrappedMarkdown(`# Title\n\n${long}\nmore\n\n- ${long}\n  more\n- short`).split("\n");
  expect(lines.filter((line) => line.length > 100)).toEqual([]);
  expect(lines).toEqual([
    ...["# Title", "", "word ".repeat(20).trim(), `${"word ".repeat(10)}more`, ""],
    ...[`- ${"word ".repeat(19).trim()}`, `  ${"word ".repeat(11)}more`, "- short"],
  ]);
});

test("tables, headings and code of a generated page stay as they are", () => {
  const page = `## ${long}\n\n| ${long} |\n|---|\n\n\`\`\`sh\n${long}\n\`\`\`\n`;
  expect(wrappedMarkdown(page)).toBe(page);
});

test("wrapping a generated page breaks no code between backticks, and begins no list or heading", () => {
  const code = "`berth exec acme -- ls`";
  expect(wrappedMarkdown(`${"x".repeat(90)} ${code}`)).toBe(`${"x".repeat(90)}\n${code}`);
  expect(wrappedMarkdown(`${"x".repeat(90)} abcdefghi - y`)).toBe(`${"x".repeat(90)}\nabcdefghi - y`);
});
