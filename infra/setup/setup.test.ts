import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { stepsFor } from "./setup.mjs";

let root: string;

beforeEach(() => {
  root = mkdtempSync(path.join(os.tmpdir(), "berth-setup-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/**
 * A whole set-up in a process of its own, with two steps that leave a file each, `second` only after `first`. None is
 * finished before there is a file `go`.
 */
const SET_UP = `
  import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
  import { setTimeout as sleep } from 'node:timers/promises';
  const [setupFolder, root] = process.argv.slice(1);
  const { setUp } = await import(setupFolder + 'setup.mjs');
  const { newContext } = await import(setupFolder + 'context.mjs');
  const { Report } = await import(setupFolder + 'report.mjs');
  const step = (name, shared, before) => ({
    name, shared,
    find: async () => existsSync(root + '/' + name) ? { ready: true, text: 'there' } : { ready: false, text: name },
    make: async () => {
      if (before && !existsSync(root + '/' + before)) throw new Error(name + ' before ' + before);
      appendFileSync(root + '/made', name + '\\n');
      while (!existsSync(root + '/go')) await sleep(5);
      writeFileSync(root + '/' + name, '');
    },
  });
  await setUp(newContext(root), [step('first', false), step('second', true, 'first')], new Report(process.stdout));
`;

const WAITING = "another set-up of this clone is running";

async function runSetUp() {
  const setupFolder = new URL("./", import.meta.url).href;
  const child = spawn(process.execPath, ["--input-type=module", "-e", SET_UP, setupFolder, root], {
    stdio: ["ignore", "pipe", "inherit"],
    // The machine-wide lock is in the temporary folder: this one keeps a real set-up on this machine out of the test.
    env: { ...process.env, TMPDIR: root },
  });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk) => {
    text += chunk;
    if (text.includes(WAITING)) writeFileSync(path.join(root, "go"), "");
  });
  const [code] = await once(child, "close");
  return { code, text };
}

test("set-up for a fleet does not install what only tests need", () => {
  const names = (options: Parameters<typeof stepsFor>[0]) => stepsFor(options).map(({ name }) => name);
  const ofTests = ["test images", "compose", "test tools", "browser"];
  const all = names({ testImages: true, browser: true });
  expect(all).toEqual(expect.arrayContaining(ofTests));
  expect(names({ testImages: false, browser: false })).toEqual(all.filter((name) => !ofTests.includes(name)));
});

test("a second run of set-up finds everything and makes nothing", async () => {
  writeFileSync(path.join(root, "go"), "");
  expect((await runSetUp()).code).toBe(0);
  const second = await runSetUp();
  expect(second).toMatchObject({ code: 0, text: expect.stringMatching(/^first +there\nsecond +there\n/m) });
  expect(readFileSync(path.join(root, "made"), "utf8")).toBe("first\nsecond\n");
});

// The holder goes on only when another has said that it waits: that they really met is part of the test.
test("of four set-ups that run at once, all succeed and each step is made once, in order", async () => {
  const runs = await Promise.all(Array.from({ length: 4 }, runSetUp));
  expect(runs.map((run) => run.code)).toEqual([0, 0, 0, 0]);
  expect(readFileSync(path.join(root, "made"), "utf8")).toBe("first\nsecond\n");
});
