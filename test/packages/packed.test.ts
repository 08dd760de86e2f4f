import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as base, describe, expect, vi } from "vitest";
import { type DocBlock, docBlocks, fits, root, runProgram, statedOutput } from "../support/doc-blocks.ts";
import { type PackageManager, Project } from "./project.ts";

// The first test of each fixture waits for all packages to be bundled and installed.
vi.setConfig({ testTimeout: 300_000 });

const names = ["@berth/protocol", "@berth/client", "berth"] as const;
const managers = ["npm", "pnpm"] as const;

interface Tarballs {
  readonly directory: string;
  of(name: string): string;
}

interface Fleet {
  /** Where its tarball is installed. */
  readonly directory: string;
  readonly redis: string;
  readonly gateway: string;
}

/** Plain JavaScript, since set-up runs before anything is installed. */
interface Recipe {
  readonly RECIPE_FILES: readonly string[];
  readonly VARIANTS: Readonly<Record<string, { readonly lists: readonly string[] }>>;
}

const test = base.extend<{ tarballs: Tarballs; fleet: Fleet }>({
  tarballs: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
    async ({}, use) => {
      const directory = await mkdtemp(join(tmpdir(), "berth-packed-"));
      try {
        const args = ["--conditions=@berth/source", join(root, "infra/pack/main.ts"), "--out", directory];
        const packed = await runProgram(process.execPath, args, { HOME: directory });
        expect(packed).toMatchObject({ stderr: "", code: 0 });
        const files = await readdir(directory);
        const of = (name: string) => {
          const start = `${name.replace("@", "").replace("/", "-")}-`;
          return join(directory, files.find((file) => new RegExp(`^${start}\\d`).test(file)) ?? "");
        };
        await use({ directory, of });
      } finally {
        await rm(directory, { recursive: true });
      }
    },
    { scope: "file" },
  ],
  fleet: [
    async ({ tarballs }, use) => {
      const directory = join(tarballs.directory, "fleet");
      await Project.with(tarballs.of("berth"), { by: "npm", directory });
      const env = { PATH: process.env.PATH, HOME: directory, DOCKER_HOST: process.env.DOCKER_HOST };
      const dev = spawn("npx", ["berth", "dev", "--json", "--port", "0", "--workers", "1"], {
        cwd: directory,
        env,
        stdio: ["ignore", "pipe", "inherit"],
        detached: true,
      });
      const closed = once(dev, "close");
      try {
        const [line] = await Promise.race([once(dev.stdout, "data"), closed]);
        await use({ ...JSON.parse(String(line)), directory });
      } finally {
        // As Ctrl-C on a terminal does: the whole group. Its output is open until the fleet has ended.
        process.kill(-(dev.pid ?? 0), "SIGINT");
        await closed;
      }
    },
    { scope: "file" },
  ],
});

const page = await docBlocks("docs/use-berth.md", ["ts", "js", "ts protocol"]);

function block(language: string): DocBlock {
  const found = page.find((one) => one.language === language);
  if (!found) throw new Error(`docs/use-berth.md has no ${language} block`);
  return found;
}

describe.for(names)("the tarball of %s", (name) => {
  test("a tarball has code, its files and licences, and nothing that only we use", async ({ tarballs }) => {
    const { stdout } = await runProgram("tar", ["tzf", tarballs.of(name)]);
    const files = stdout
      .trim()
      .split("\n")
      .map((file) => file.replace("package/", ""));
    expect(files).toEqual(
      expect.arrayContaining(["package.json", "README.md", "LICENSE", "THIRD-PARTY-LICENSES"]),
    );
    const wanted =
      /^(lib\/.*(\.js|\.d\.ts|\.lua|\/package\.json)|README\.md|LICENSE|THIRD-PARTY-LICENSES|package\.json)$/;
    const ofFleet = /^lib\/(packages\/init\/|infra\/sandbox\/|vendor\/)/;
    expect(files.filter((file) => !wanted.test(file) && !ofFleet.test(file))).toEqual([]);
    expect(files.filter((file) => /\.map$|tsbuildinfo|\.test\.|\/test\/|fuzz/.test(file))).toEqual([]);
    const manifest = await runProgram("tar", ["xzOf", tarballs.of(name), "package/package.json"]);
    expect(JSON.parse(manifest.stdout)).toMatchObject({
      ...{ name, license: "MIT", engines: { node: ">=24" }, repository: { type: "git" } },
      dependencies: name === "berth" ? {} : { zod: expect.stringMatching(/^\^4\./) },
    });
    const { stdout: text } = await runProgram("tar", [
      "xzOf",
      tarballs.of(name),
      "--wildcards",
      "package/lib/*ts",
    ]);
    expect(text).not.toContain("sourceMappingURL");
  });
});

test("the tarball of berth has every file that its sandbox image is built from", async ({ tarballs }) => {
  const { stdout } = await runProgram("tar", ["tzf", tarballs.of("berth")]);
  const { RECIPE_FILES, VARIANTS }: Recipe = await import(join(root, "infra/sandbox/recipe.mjs"));
  const lists = Object.values(VARIANTS).flatMap((variant) => variant.lists);
  expect(RECIPE_FILES).toEqual(expect.arrayContaining(lists));
  const recipe = RECIPE_FILES.map((file) => `package/lib/infra/sandbox/${file}`);
  expect(stdout.trim().split("\n")).toEqual(expect.arrayContaining(recipe));
});

describe.for(managers)("installed alone by %s", (by: PackageManager) => {
  test("@berth/client has types that hold, and runs jobs of a fleet", async ({ tarballs, fleet }) => {
    const directory = join(tarballs.directory, `client-${by}`);
    const project = await Project.with(tarballs.of("@berth/client"), { by, directory });
    // Types that could not be found would be any, and the last line would be no error.
    const wrong = "// @ts-expect-error a command has no content\nrun.content;\n";
    expect(await project.typeErrors("typed.ts", block("ts").code + wrong)).toBe("");
    for (const [file, { code }] of [
      ["first.ts", block("ts")],
      ["plain.js", block("js")],
    ] as const) {
      const end = await project.run(file, code, { REDIS_URL: fleet.redis });
      expect(end).toMatchObject({ stderr: "", code: 0 });
      expect(fits(statedOutput(code), end.stdout), end.stdout).toBe(true);
    }
  });

  test("@berth/protocol has types that hold, and checks a job", async ({ tarballs }) => {
    const directory = join(tarballs.directory, `protocol-${by}`);
    const project = await Project.with(tarballs.of("@berth/protocol"), { by, directory });
    const { code } = block("ts protocol");
    expect(await project.typeErrors("schemas.ts", code)).toBe("");
    const end = await project.run("schemas.ts", code);
    expect(end).toMatchObject({ stderr: "", code: 0 });
    expect(fits(statedOutput(code), end.stdout), end.stdout).toBe(true);
  });

  test("berth is a command that needs nothing else, and reaches a fleet", async ({ tarballs, fleet }) => {
    const directory = join(tarballs.directory, `command-${by}`);
    await Project.with(tarballs.of("berth"), { by, directory });
    expect((await readdir(join(directory, "node_modules"))).filter((one) => !one.startsWith("."))).toEqual([
      "berth",
    ]);
    const berth = join(directory, "node_modules/.bin/berth");
    const { stdout } = await runProgram(berth, ["exec", "acme", "--", "echo", "hello"], {
      BERTH_URL: fleet.gateway,
    });
    expect(stdout).toBe("hello\n");
  });
});

test("berth dev of the tarball has its dashboard and its metrics", async ({ fleet }) => {
  for (const path of ["/board", "/docs", "/metrics"])
    expect((await fetch(`${fleet.gateway}${path}`)).status).toBe(200);
});

test("berth dev of the tarball reports what the machine lacks, and what to do", async ({ fleet }) => {
  const berth = join(fleet.directory, "node_modules/.bin/berth");
  const nowhere = { DOCKER_HOST: "unix:///nonexistent/docker.sock" };
  const { code, stderr } = await runProgram(berth, ["dev", "--dir", join(fleet.directory, "other")], nowhere);
  expect(code).toBe(1);
  expect(stderr).toContain(
    "DOCKER_HOST is unix:///nonexistent/docker.sock, but no Docker engine answers there.",
  );
  expect(stderr).toContain("do:  start that engine, or unset DOCKER_HOST");
});
