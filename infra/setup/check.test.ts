import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { osRelease } from "./apt.mjs";
import { repoRoot } from "./places.mjs";

let clone: string;

beforeEach(() => {
  clone = mkdtempSync(path.join(os.tmpdir(), "berth-check-"));
  chmodSync(clone, 0o755);
  for (const folder of ["infra/setup", "infra/sandbox"]) {
    cpSync(path.join(repoRoot, folder), path.join(clone, folder), { recursive: true });
  }
  mkdirSync(path.join(clone, "empty"));
  writeFileSync(path.join(clone, "package.json"), "{}");
});
afterEach(() => rmSync(clone, { recursive: true, force: true }));

function setup(argv: string[], options: { env?: NodeJS.ProcessEnv; uid?: number } = {}) {
  return spawnSync(process.execPath, [path.join(clone, "infra/setup/main.mjs"), ...argv], {
    encoding: "utf8",
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
    // Nothing on the PATH and no engine: a machine that has only Node.
    env: { PATH: path.join(clone, "empty"), DOCKER_HOST: `unix://${clone}/no-engine.sock`, ...options.env },
  });
}

/** Every file beneath the clone with its size and time of change. */
function everything() {
  return readdirSync(clone, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => {
      const { size, mtimeMs } = lstatSync(path.join(clone, name));
      return `${name} ${size} ${mtimeMs}`;
    });
}

test("--check on a bare machine names each missing thing, changes nothing, and exits 1", () => {
  const before = everything();
  const { status, stdout, stderr } = setup(["setup", "--check"]);
  expect(stderr).toBe("");
  const missing = [...stdout.matchAll(/^(.{14})missing: /gm)].map(([, name]) => name?.trim());
  expect(missing).toEqual([
    "pnpm",
    "dependencies",
    "redis-server",
    "engine",
    "build tools",
    "sandbox image",
    "test images",
  ]);
  expect(stdout).toMatch(/^disk .* GiB free at /m);
  expect(status).toBe(1);
  expect(everything()).toEqual(before);
});

test("set-up installs no Redis when REDIS_URL names one", () => {
  const { stdout } = setup(["setup", "--check"], { env: { REDIS_URL: "redis://somewhere" } });
  expect(stdout).toMatch(/^redis-server +using REDIS_URL$/m);
});

test("set-up uses a Chromium that is given, and without one goes on and leaves out the test that needs it", () => {
  const left = setup(["setup", "--check"]).stdout;
  expect(left).toMatch(/^browser +none; the test of the board is left out \(.*install .*\)$/m);
  const given = setup(["setup", "--check"], { env: { CHROMIUM: process.execPath } }).stdout;
  expect(given).toMatch(new RegExp(`^browser +${process.execPath}$`, "m"));
});

test.skipIf(process.getuid?.() !== 0 || osRelease().ID !== "debian")(
  "root on Debian is given a Chromium for the tests",
  () => {
    writeFileSync(path.join(clone, "empty/apt-get"), "", { mode: 0o755 });
    expect(setup(["setup", "--check"]).stdout).toMatch(/^browser +missing: chromium-headless-shell$/m);
  },
);

test.skipIf(process.getuid?.() !== 0 || osRelease().ID !== "debian")(
  "a Chromium that cannot be installed leaves out its test, and set-up goes on",
  () => {
    writeFileSync(path.join(clone, "empty/apt-get"), "#!/bin/sh\nexit 100\n", { mode: 0o755 });
    const script = `
      import { browserStep } from '${clone}/infra/setup/step-browser.mjs';
      import { newContext } from '${clone}/infra/setup/context.mjs';
      const context = newContext('${clone}');
      await browserStep.make(context, () => {});
      console.log(JSON.stringify(await browserStep.find(context)));
    `;
    const env = { ...process.env, PATH: path.join(clone, "empty"), CHROMIUM: "" };
    const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      env,
      encoding: "utf8",
    });
    expect(JSON.parse(stdout)).toEqual({
      ready: true,
      text: expect.stringMatching(/^none; the test of the board is left out \(installing .* failed: /),
    });
  },
);

test("set-up does not install an engine over a DOCKER_HOST that does not answer", () => {
  const script = `
    import { engineStep } from '${clone}/infra/setup/step-engine.mjs';
    import { newContext } from '${clone}/infra/setup/context.mjs';
    await engineStep.make(newContext('${clone}'), () => {}).catch((error) => console.log(error.toText()));
  `;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    env: { PATH: "", DOCKER_HOST: "tcp://127.0.0.1:9" },
  });
  expect(stdout).toContain("DOCKER_HOST is tcp://127.0.0.1:9, but no Docker engine answers there");
  expect(stdout).toContain("do:  start that engine, or unset DOCKER_HOST");
});

test("--help shows the usage, and an unknown word is refused with it", () => {
  expect(setup(["setup", "--help"])).toMatchObject({
    status: 0,
    stdout: expect.stringContaining("npm run setup -- --check"),
  });
  expect(setup(["setup", "--chekc"])).toMatchObject({
    status: 64,
    stderr: expect.stringContaining("Unknown option: --chekc"),
  });
  expect(setup(["sutep"])).toMatchObject({
    status: 64,
    stderr: expect.stringContaining("Unknown verb: sutep"),
  });
});

test.skipIf(process.getuid?.() !== 0)(
  "a user who may not open the engine's socket gets the command that adds the group",
  () => {
    const { stdout, status } = setup(["setup", "--check"], { uid: 65534, env: { DOCKER_HOST: "" } });
    expect(stdout).toMatch(/^engine +missing: permission to use the Docker engine at unix:/m);
    expect(status).toBe(1);
    const script = `
    import { engineStep } from '${clone}/infra/setup/step-engine.mjs';
    import { newContext } from '${clone}/infra/setup/context.mjs';
    await engineStep.make(newContext('${clone}'), () => {}).catch((error) => console.log(error.toText()));
  `;
    const made = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      encoding: "utf8",
      uid: 65534,
      gid: 65534,
      env: {},
    });
    expect(made.stdout).toMatch(/do: {2}sudo usermod -aG \S+ nobody/);
  },
);
