import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
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

function examples(readme: string): string[] {
  return [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1] ?? "");
}

test("the README's sandbox does what its comments say", async () => {
  const readme = await readFile(join(root, "README.md"), "utf8");
  const example = examples(readme)[1] ?? "";
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

test("the README's fleet does what its comments say", async ({ fleet }) => {
  await fleet.worker("worker-1");
  const example = examples(await readFile(join(root, "README.md"), "utf8"))[0] ?? "";
  const directory = await mkdtemp(join(root, "test/readme-"));
  try {
    const file = join(directory, "example.ts");
    await writeFile(file, example.replace("redis://127.0.0.1:6379", fleet.redis.url));
    const { code, output } = await run(file);
    // In how many pieces the output comes is nobody's promise.
    const said = output.replaceAll(/(stdout\n)+/g, "stdout\n");
    expect(said).toBe("{ kind: 'exited', code: 0 } 42\n\nstarted\nstdout\nfinished\ncancelled\n");
    expect(code).toBe(0);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("every npm script that a page names is there", async () => {
  const { scripts } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const pages = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "examples/README.md"];
  for (const file of await readdir(join(root, "docs"), { recursive: true }))
    if (file.endsWith(".md")) pages.push(join("docs", file));
  const texts = await Promise.all(pages.map((page) => readFile(join(root, page), "utf8")));
  const named = new Set(
    texts.flatMap((text) => [...text.matchAll(/npm run (?:-s )?(\w+)/g)].map(([, name]) => name)),
  );
  expect(named).toContain("build");
  expect(Object.keys(scripts)).toEqual(expect.arrayContaining([...named]));
  // It is on nobody's PATH.
  for (const text of texts) expect(text).not.toContain("turbo run");
});
