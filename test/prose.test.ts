import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { settingNames } from "@berth/protocol";
import { expect, test } from "vitest";
import { commandNames } from "../apps/cli/src/commands.ts";
import { brokenLinks, headingsOf, proseLines, root } from "./support/doc-blocks.ts";

async function allPages(): Promise<string[]> {
  const { stdout } = await promisify(execFile)("git", ["ls-files", "--", "*.md"], { cwd: root });
  return stdout.trim().split("\n");
}

const pages = await allPages();
const textOf = (page: string) => readFile(join(root, page), "utf8");

test.for(pages)("no line of %s is over 100 columns, tables and code excepted", async (page) => {
  const long = proseLines(await textOf(page)).filter((line) => line.length > 100);
  expect(long).toEqual([]);
});

test.for(pages)("headings and paragraphs of %s have one blank line between them", async (page) => {
  const text = await textOf(page);
  expect(text).not.toContain("\n\n\n");
  const lines = proseLines(text);
  const crowded = lines.filter((line, index) => /^#+ /.test(line) && (lines[index - 1] ?? "") !== "");
  expect(crowded).toEqual([]);
});

test.for(pages)("every link of %s leads to a file or heading that exists", async (page) => {
  expect(await brokenLinks(page)).toEqual([]);
});

test("every BERTH_ variable that a page names is a setting, or one of the tests'", async () => {
  const tooling = new Set<string>();
  for (const file of await readdir(join(root, "test"), { recursive: true })) {
    if (!file.endsWith(".ts") || file.includes("node_modules")) continue;
    const source = await readFile(join(root, "test", file), "utf8");
    for (const [, name = ""] of source.matchAll(/process\.env\.(BERTH_[A-Z_]+)/g)) tooling.add(name);
  }
  const known = new Set([...settingNames, ...tooling]);
  const unknown: string[] = [];
  for (const page of pages) {
    // A secret's settings may come from a file.
    for (const [name] of (await textOf(page)).matchAll(/\bBERTH_[A-Z0-9_]*[A-Z0-9]\b(?!_)/g))
      if (!known.has(name) && !known.has(name.replace(/_FILE$/, ""))) unknown.push(`${page}: ${name}`);
  }
  expect(unknown).toEqual([]);
});

test("every alert has a runbook with its symptom, check, fix and verification", async () => {
  const rules = await textOf("infra/monitoring/alerts.yml");
  const alerts = [...rules.matchAll(/^ *- alert: (\w+)$/gm)].map(([, name = ""]) => name);
  expect(alerts).toContain("BerthNoWorkers");
  const page = await textOf("docs/guides/operate.md");
  const headings = headingsOf(page);
  for (const alert of alerts) {
    expect(headings).toContain(alert.toLowerCase());
    const [, section = ""] = page.split(`\n### ${alert}\n`);
    const [own = ""] = section.split(/\n#{1,3} /);
    for (const part of ["Symptom", "Check", "Fix", "Verify"]) expect(own, alert).toContain(`**${part}.**`);
  }
});

test("the glossary of ARCHITECTURE.md has each word once, in alphabetical order", async () => {
  const [, glossary = ""] = (await textOf("ARCHITECTURE.md")).split("\n## Glossary\n");
  const words = [...glossary.matchAll(/^\| ([a-z][a-z -]*) \|/gm)].map(([, word = ""]) => word).slice(1);
  expect(words).toEqual([...new Set(words)].toSorted());
  expect(words).toEqual(
    expect.arrayContaining(["claim", "line", "mounter", "order", "outlet", "place", "redrive", "successor"]),
  );
  expect(words).toEqual(expect.arrayContaining(["resting", "room", "staged request", "tree", "wake-up"]));
});

test("docs/README.md answers the six questions that are asked most, each with a link", async () => {
  const [, part = ""] = (await textOf("docs/README.md")).split("\n## Asked most\n");
  const [table = ""] = part.split("\n## ");
  const rows = [...table.matchAll(/^\| (.+\?) \| (.+) \| \[\w+\]\(\S+#\S+\) \|$/gm)];
  const questions = rows.map(([, question]) => question);
  for (const about of [
    "worker dies",
    "another host",
    "stop a tenant",
    "one domain",
    "new job kind",
    "job cost",
  ])
    expect(questions).toContainEqual(expect.stringContaining(about));
});

test("every berth command that a page names between backticks exists", async () => {
  const groups = new Set(commandNames.map((name) => name.split(" ")[0]));
  const isKnown = (first: string, second: string) =>
    commandNames.includes(first) ||
    commandNames.includes(`${first} ${second}`) ||
    (second === "" && groups.has(first)) ||
    first === "help";
  const unknown: string[] = [];
  for (const page of pages) {
    const text = (await textOf(page)).replaceAll(/^```[\s\S]*?^```$/gm, "");
    for (const [, first = "", second = ""] of text.matchAll(/`berth\s+([a-z]+)(?:\s+([a-z]+))?[^`]*`/g))
      if (!isKnown(first, second)) unknown.push(`${page}: ${first} ${second}`);
  }
  expect(unknown).toEqual([]);
});
