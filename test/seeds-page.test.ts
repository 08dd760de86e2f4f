import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";

const docs = new URL("../docs/", import.meta.url);
const page = await readFile(new URL("seeds.md", docs), "utf8");
const states = ["here", "in part", "later", "refused", "open"] as const;
/** The heading of each system, by the name that its items begin with. */
const titles = {
  assistant: "Assistant server",
  code: "Code service",
  shell: "Shell confinement",
  personal: "Personal agent",
  agents: "Agent gateway",
};
const cellsOf = (line: string) =>
  line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
const lines = page.split("\n").filter((line) => line.startsWith("| "));
const items = lines
  .filter((line) => /^\| [a-z]+-\d+ \|/.test(line))
  .map((line) => {
    const [id = "", what = "", state = "", where = ""] = cellsOf(line);
    return { id, what, state, where };
  });

/** As a heading's anchor on the page that it stands on. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

describe("docs/seeds.md", () => {
  test("docs/seeds.md has every item of the five systems once, in a state that it explains", () => {
    const expected = { assistant: 80, code: 43, shell: 47, personal: 47, agents: 59 };
    const ids = Object.entries(expected).flatMap(([system, count]) =>
      Array.from({ length: count }, (_, index) => `${system}-${index + 1}`),
    );
    expect(items.map(({ id }) => id)).toEqual(ids);
    for (const { id, what, state, where } of items) {
      expect(states, id).toContain(state);
      expect(what, id).not.toBe("");
      expect(where, id).not.toBe("");
      if (state === "here") expect(where, `${id} says where`).toMatch(/\]\(/);
    }
  });

  test("docs/seeds.md counts what it lists, and most of it is here", () => {
    const count = (system: string, state: string) =>
      items.filter((item) => item.id.startsWith(system) && item.state === state).length;
    for (const [system, title] of Object.entries({ ...titles, "": "all" })) {
      const row =
        lines.find((line) => line.startsWith(`| ${title} |`) || line.startsWith(`| [${title}](`)) ?? "";
      const [, total, ...counted] = cellsOf(row);
      expect(counted.map(Number), row).toEqual(states.map((state) => count(system, state)));
      expect(Number(total), row).toBe(items.filter(({ id }) => id.startsWith(system)).length);
    }
    expect(count("", "here")).toBeGreaterThanOrEqual(250);
  });

  test("docs/seeds.md leads only to files and headings that there are", async () => {
    const links = new Set([...page.matchAll(/\]\(([^)]+)\)/g)].map(([, link = ""]) => link));
    expect(links.size).toBeGreaterThan(60);
    for (const link of links) {
      const [path = "", anchor] = link.split("#");
      const text = await readFile(new URL(path || "seeds.md", docs), "utf8").catch(() => undefined);
      expect(text, link).toBeDefined();
      if (anchor !== undefined) expect(anchorsOf(text ?? ""), link).toContain(anchor);
    }
  });
});
