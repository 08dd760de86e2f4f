import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { brokenLinks, docBlocks, oneLine, root } from "../support/doc-blocks.ts";
import { ControlledWay, installClient, python, pythonClient, whyNoPython } from "../support/python.ts";
import { patient, test as withReader } from "../support/reader.ts";

const missing = await whyNoPython();
const tests = join(pythonClient, "tests");
const files = (await readdir(tests)).filter((name) => /^test_.*\.py$/.test(name));

const [{ code: opening } = { code: "" }, ...blocks] = await docBlocks("docs/python.md", ["python"]);
const page = blocks.map((block) => ({ ...block, opening }));

/** What the comments behind a block's `print` say, in its order. */
function statedOutput(code: string): string {
  return [...code.matchAll(/print\(.*\) {2}# (.+)$/gm)].map(([, stated]) => stated).join(" ");
}

interface Installed {
  readonly directory: string;
  readonly wheel: string;
  readonly site: string;
}

const test = withReader.extend<{ installed: Installed; way: Readonly<Record<string, string>> }>({
  installed: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
    async ({}, use) => {
      const directory = await mkdtemp(join(tmpdir(), "berth-python-"));
      try {
        await use({ directory, ...(await installClient(directory)) });
      } finally {
        await rm(directory, { recursive: true });
      }
    },
    { scope: "file" },
  ],
  way: [
    async ({ reader }, use) => {
      const way = new ControlledWay(reader.BERTH_URL);
      try {
        await use(await way.start());
      } finally {
        await way.stop();
      }
    },
    { scope: "file" },
  ],
});

describe.skipIf(missing)(`the Python client${missing ? ` (${missing})` : ""}`, () => {
  test("packs into the same wheel each time, of the release's version", patient, async ({ installed }) => {
    const { directory, wheel } = installed;
    const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
    expect(wheel).toBe(join(directory, "dist", `berth_client-${version}-py3-none-any.whl`));
    await python([join(pythonClient, "pack.py"), join(directory, "again")]);
    const again = wheel.replace("/dist/", "/again/");
    expect((await readFile(again)).equals(await readFile(wheel))).toBe(true);
  });

  test("a wheel whose files are not those of its RECORD is not installed", patient, async ({ installed }) => {
    const { directory, wheel } = installed;
    const spoil = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as old, zipfile.ZipFile(sys.argv[2], "w") as new:
    for name in old.namelist():
        new.writestr(name, old.read(name) + (b"#" if name == "berth/client.py" else b""))`;
    const spoilt = join(directory, "spoilt.whl");
    expect(await python(["-c", spoil, wheel, spoilt])).toMatchObject({ code: 0 });
    const install = (from: string, to: string) =>
      python([join(pythonClient, "pack.py"), "--install", from, join(directory, to)]);
    expect(await install(wheel, "good")).toMatchObject({ code: 0 });
    const { code, stderr } = await install(spoilt, "bad");
    expect(stderr).toContain("berth/client.py is not what RECORD has of it");
    expect(code).toBe(1);
  });

  test.for(page)(
    "docs/python.md, line $line, $heading: prints what its comments say",
    patient,
    async (block, { reader, installed }) => {
      const env = { ...reader, PYTHONPATH: installed.site };
      const { code, stdout, stderr } = await python(
        ["-c", `${block.opening}${block.code}berth.close()\n`],
        env,
      );
      expect(stderr).toBe("");
      expect(oneLine(stdout)).toBe(oneLine(statedOutput(block.code)));
      expect(code).toBe(0);
    },
  );

  test("the links of docs/python.md lead somewhere", async () => {
    expect(await brokenLinks("docs/python.md")).toEqual([]);
  });

  test.for(files)(
    "the Python client's %s passes with the installed wheel",
    patient,
    async (file, { reader, way, installed }) => {
      const env = { ...reader, ...way, PYTHONPATH: `${installed.site}:${tests}` };
      const { code, stderr } = await python(["-m", "unittest", file.replace(".py", "")], env);
      expect(code, stderr).toBe(0);
      // Such as one about a connection that was not closed.
      expect(stderr).not.toContain("Warning");
    },
  );
});
