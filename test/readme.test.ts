import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { test } from "./support/fleet.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

function run(file: string): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--conditions=@berth/source", file], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, output }));
  });
}

/** The first block of TypeScript of a page. */
async function exampleOf(page: string): Promise<string> {
  return /```ts\n([\s\S]*?)```/.exec(await readFile(join(root, page), "utf8"))?.[1] ?? "";
}

test("the program of docs/sandbox.md prints what its comments state", async () => {
  const example = await exampleOf("docs/sandbox.md");
  // Beside the packages it imports, and with names of its own.
  const directory = await mkdtemp(join(root, "test/readme-"));
  try {
    const name = directory
      .slice(-6)
      .toLowerCase()
      .replaceAll(/[^a-z0-9]/g, "x");
    const workspaces = join(directory, "workspaces");
    const file = join(directory, "example.ts");
    await writeFile(file, example.replace('"demo"', `"test-${name}"`).replace("/tmp/berth-demo", workspaces));
    const { code, output } = await run(file);
    expect(output).toBe("42\n\n{ kind: 'timed-out', afterMs: 500 }\n");
    expect(code).toBe(0);
    expect(await readFile(join(workspaces, "acme/main.py"), "utf8")).toBe("print(6 * 7)");
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("the README's program prints what its comments state", async ({ fleet }) => {
  await fleet.worker("worker-1");
  const example = await exampleOf("README.md");
  const directory = await mkdtemp(join(root, "test/readme-"));
  try {
    const file = join(directory, "example.ts");
    await writeFile(file, example.replace("redis://127.0.0.1:6379", fleet.redis.url));
    const { code, output } = await run(file);
    // Output comes in any number of pieces.
    const printed = output.replaceAll(/(stdout\n)+/g, "stdout\n");
    expect(printed).toBe("{ kind: 'exited', code: 0 } 42\n\nstarted\nstdout\nfinished\ncancelled\n");
    expect(code).toBe(0);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("the README's first screen has a picture, the two commands and fifteen lines of code", async () => {
  const page = await readFile(join(root, "README.md"), "utf8");
  const [screen = ""] = page.split("\n## Beside others\n");
  expect(screen.split("\n").length).toBeLessThanOrEqual(65);
  expect(screen).toMatch(/^!\[.+\]\(docs\/images\/fleet\.png\)$/m);
  expect(screen).toMatch(/^npm start\b/m);
  expect(screen).toMatch(/^npm test\b/m);
  const code = (await exampleOf("README.md")).split("\n").filter((line) => line !== "");
  expect(code.length).toBeLessThanOrEqual(15);
});

test("the README's numbers are those of docs/benchmarks.md", async () => {
  const [readme = "", benchmarks = ""] = await Promise.all(
    ["README.md", "docs/benchmarks.md"].map((page) => readFile(join(root, page), "utf8")),
  );
  const text = readme.replaceAll(/\s+/g, " ");
  const failover = /\| failover \|[^|]*\| ([\d.]+ s) \| ([\d.]+ s) \| bare BullMQ/.exec(benchmarks);
  expect(failover).not.toBeNull();
  expect(text).toContain(`after ${failover?.[2]} instead of ${failover?.[1]}`);
  const exec = /\| exec-latency \| p50[^|]*\|[^|]*\|[^|]*\| API exec \| ([\d.]+)×/.exec(benchmarks);
  expect(text).toContain(`took ${Math.round(Number(exec?.[1]))} times as long`);
});

const adrs = (await readdir(join(root, "docs/adr"))).map((name) => join("docs/adr", name));
// A row of a table cannot be wrapped, as test/prose.test.ts allows it. The README has to be readable as plain text all the same.
test("no line of README.md is over 100 columns, tables included", async () => {
  const lines = (await readFile(join(root, "README.md"), "utf8")).split("\n");
  expect(lines.filter((line) => line.length > 100)).toEqual([]);
});

test("docs/adr/README.md lists every decision", async () => {
  const list = await readFile(join(root, "docs/adr/README.md"), "utf8");
  const numbered = adrs.filter((path) => /\/\d+-/.test(path));
  expect(numbered.filter((path) => !list.includes(`](${basename(path)})`))).toEqual([]);
});

test("every npm script that a page names exists", async () => {
  const { scripts } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const all = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "examples/README.md"];
  for (const file of await readdir(join(root, "docs"), { recursive: true }))
    if (file.endsWith(".md")) all.push(join("docs", file));
  const texts = await Promise.all(all.map((page) => readFile(join(root, page), "utf8")));
  const named = new Set(
    texts.flatMap((text) => [...text.matchAll(/npm run (?:-s )?(\w+)/g)].map(([, name]) => name)),
  );
  expect(named).toContain("build");
  expect(Object.keys(scripts)).toEqual(expect.arrayContaining([...named]));
  // turbo is not on a reader's PATH.
  for (const text of texts) expect(text).not.toContain("turbo run");
});
