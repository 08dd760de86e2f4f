/**
 * What an agent finds in the sandbox, tried in real containers, however the image was built. Needs the images that
 * set-up makes. The Dockerfile's image and, without a registry, the base it starts from stay on the engine
 * afterwards: they are the build's cache, and spare later runs a minute.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newContext } from "../setup/context.mjs";
import { askEngine, callEngine, type Engine } from "../setup/engine-api.mjs";
import { repoRoot } from "../setup/places.mjs";
import { findProgram } from "../setup/search-path.mjs";
import { engineStep } from "../setup/step-engine.mjs";
import { debianFileSystem } from "./bootstrap.mjs";
import { importImage, inspectImage, pullImage, removeNameless } from "./engine-images.mjs";
import {
  BASE_IMAGE,
  BUSYBOX_IMAGE,
  ENTRYPOINT_IMAGE,
  folder,
  packageList,
  SANDBOX_IMAGE,
  VARIANTS,
} from "./recipe.mjs";
import { buildFromDockerfile } from "./sandbox-image.mjs";

const FROM_DOCKERFILE = "berth-sandbox:from-dockerfile";
const PLAIN_BASE = "berth-base:test";

/** Each tool with a use of it whose answer shows that it works, not only that it is there. */
const TOOLS: Record<string, { script: string; answer: string }> = {
  bash: { script: `bash -c 'a=(one two); echo \${a[1]}'`, answer: "two" },
  "ca-certificates": {
    script: "grep -c 'BEGIN CERT' /etc/ssl/certs/ca-certificates.crt | grep -qE '..+' && echo many",
    answer: "many",
  },
  coreutils: { script: "printf 'b\\na\\n' | sort | head -n 1", answer: "a" },
  curl: {
    script: "curl -s file:///etc/hostname >/dev/null && curl --version | cut -d ' ' -f 1 | head -n 1",
    answer: "curl",
  },
  findutils: { script: "find /etc -maxdepth 1 -name passwd | xargs basename", answer: "passwd" },
  gawk: { script: "gawk 'BEGIN { print strftime(\"%Y\", 0, 1) }'", answer: "1970" },
  git: {
    script:
      "cd /tmp && git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m hi && git log --format=%s",
    answer: "hi",
  },
  grep: { script: "echo abc | grep -oP 'b(?=c)'", answer: "b" },
  jq: { script: "echo '{\"a\":[1,2]}' | jq -c .a", answer: "[1,2]" },
  nodejs: { script: "node -e 'console.log(JSON.stringify([6 * 7]))'", answer: "[42]" },
  procps: { script: "ps -o comm= -p 1", answer: "sh" },
  python3: { script: "python3 -c 'import json, sqlite3, ssl; print(json.dumps(1 + 1))'", answer: "2" },
  sed: { script: "echo abc | sed -E 's/(b)/[\\1]/'", answer: "a[b]c" },
};

let engine: Engine;
let home: string;

beforeAll(async () => {
  home = mkdtempSync(path.join(os.tmpdir(), "berth-toolbelt-"));
  const context = newContext(repoRoot);
  const found = await engineStep.find(context);
  if (!context.engine) throw new Error(`no Docker engine for the tests: ${found.text}; run npm run setup`);
  engine = context.engine;
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Patient: the attacks run on the same engine, and some of them keep it busy for a while. */
const ask = (method: string, target: string, value?: object) =>
  askEngine(engine, method, target, value, 5 * 60_000);

/** Runs a shell script in a container made as Berth makes them: a uid the image does not know, a read-only root, no network. */
async function runIn(image: string, script: string, settings: object = {}) {
  const { Id: id } = await ask("POST", "/containers/create", {
    Image: image,
    Cmd: ["sh", "-c", script],
    User: "54321:54321",
    Labels: { "berth.test": "toolbelt" },
    HostConfig: { NetworkMode: "none", ReadonlyRootfs: true, Tmpfs: { "/tmp": "" } },
    ...settings,
  });
  try {
    await ask("POST", `/containers/${id}/start`);
    const { StatusCode: exitCode } = await ask("POST", `/containers/${id}/wait`);
    const { body } = await callEngine(engine, "GET", `/containers/${id}/logs?stdout=1&stderr=1`);
    return { exitCode, text: withoutFrames(body).trim() };
  } finally {
    await ask("DELETE", `/containers/${id}?force=1`);
  }
}

/** The engine sends both outputs in frames of eight bytes of header, the last four of which are the length. */
function withoutFrames(body: Buffer) {
  let text = "";
  for (let at = 0; at < body.length; ) {
    const end = at + 8 + body.readUInt32BE(at + 4);
    text += body.toString("utf8", at + 8, end);
    at = end;
  }
  return text;
}

async function useEveryTool(image: string) {
  const answers: Record<string, string> = {};
  for (const [tool, { script }] of Object.entries(TOOLS)) answers[tool] = (await runIn(image, script)).text;
  return answers;
}

const expectedAnswers = Object.fromEntries(Object.entries(TOOLS).map(([tool, { answer }]) => [tool, answer]));
const packagesIn = async (image: string) =>
  (await runIn(image, `dpkg-query -W -f '\${Package}\\n'`)).text.split("\n");

describe("package list", () => {
  test("the package list is tried tool by tool below", () => {
    expect(Object.keys(TOOLS)).toEqual(packageList());
  });

  test("the package lists are the only ones: the Dockerfile names no package", () => {
    const dockerfile = readFileSync(path.join(folder, "Dockerfile"), "utf8").replaceAll(/^#.*$/gm, "");
    const [, installed] = /apt-get install ([^\\]*)\\/.exec(dockerfile) ?? [];
    expect(installed?.trim()).toBe("-y --no-install-recommends");
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's
    expect(dockerfile).toContain("cat packages.txt ${LISTS}");
    const list = (variant: "build" | "full") => packageList(variant).slice(packageList().length);
    expect(list("build")).toEqual(["build-essential", "pkg-config"]);
    expect(list("full").slice(0, 2)).toEqual(list("build"));
  });
});

describe(SANDBOX_IMAGE, () => {
  test("the package list has every tool, and each works for a uid of no name on a read-only root", {
    timeout: 10 * 60_000,
  }, async () => {
    expect(await useEveryTool(SANDBOX_IMAGE)).toEqual(expectedAnswers);
  });

  test("the package list starts in /workspace, speaks UTF-8, has a sandbox user and keeps no leftovers of its making", async () => {
    const script =
      "pwd; echo $LANG; id -nu sandbox; ls /opt /tmp /var/lib/apt/lists | grep -v -e : -e lock -e partial -e '^$'";
    expect((await runIn(SANDBOX_IMAGE, script)).text).toBe("/workspace\nC.UTF-8\nsandbox");
  });
});

/** What each variant has besides, used by a uid of no name without a network. */
const FURTHER_TOOLS = {
  build: {
    "a C compiler": 'echo "int main(void){return 42;}" > m.c && cc m.c -o m; ./m; echo $?',
    make: 'printf "all:\\n\\t@echo 42\\n" > Makefile && make',
  },
  full: {
    "a virtual environment with pip": "python3 -m venv v && v/bin/pip --version > /dev/null && echo 42",
    npm: "npm --version > /dev/null && echo 42",
    Go: 'printf "package main\\nfunc main() { print(6*7) }\\n" > m.go && go run m.go 2>&1',
    Rust: 'echo "fn main() { println!(\\"{}\\", 6*7); }" > m.rs && rustc m.rs && ./m',
    cargo: "cargo init -q --name p c && cd c && cargo run -q --offline | tr -cd H && echo 42",
  },
  browser: {
    Chromium:
      "chromium-headless-shell --no-sandbox --dump-dom 'data:text/html,<script>document.write(6*7)</script>' 2> /dev/null | grep -o 42",
  },
} as const;

describe.each(["build", "full", "browser"] as const)("variant %s", (variant) => {
  test("an image variant has its tools, if it was built on this machine", { timeout: 10 * 60_000 }, async ({
    skip,
  }) => {
    const { image } = VARIANTS[variant];
    if (!(await inspectImage(engine, image))) skip(`${image} is not built; npm run image -- ${variant}`);
    const tools = { ...(variant === "full" ? FURTHER_TOOLS.build : {}), ...FURTHER_TOOLS[variant] };
    for (const [tool, script] of Object.entries(tools)) {
      const settings = {
        HostConfig: { NetworkMode: "none", ReadonlyRootfs: true, Tmpfs: { "/tmp": "exec" } },
      };
      const { text } = await runIn(image, `cd /tmp && export HOME=/tmp && ${script}`, settings);
      expect(`${tool}: ${text.split("\n").at(-1)}`).toMatch(/: H?42$/);
    }
  });
});

describe("Dockerfile", () => {
  test("the Dockerfile makes the same image", { timeout: 10 * 60_000 }, async ({ skip }) => {
    const base = await baseForDockerfile();
    if (!base) skip(`${BASE_IMAGE} is not reachable, and there is no mmdebstrap to make a base from`);
    const log = path.join(home, "dockerfile.log");
    const before = await inspectImage(engine, FROM_DOCKERFILE);
    await buildFromDockerfile(engine, log, { name: FROM_DOCKERFILE, base: base ?? "" });
    if (before) await removeNameless(engine, before.Id);
    expect(await useEveryTool(FROM_DOCKERFILE)).toEqual(expectedAnswers);

    const [built, imported] = await Promise.all(
      [FROM_DOCKERFILE, SANDBOX_IMAGE].map((name) => inspectImage(engine, name)),
    );
    for (const setting of ["WorkingDir", "Cmd", "Entrypoint", "User", "Labels"]) {
      expect([setting, built.Config[setting]]).toEqual([setting, imported.Config[setting]]);
    }
    expect(built.Config.Env.sort()).toEqual(imported.Config.Env.sort());
    // A registry's base may hold a package or two that ours does not; the two of our own making are equal to the last one.
    const packages = await packagesIn(FROM_DOCKERFILE);
    if (base === PLAIN_BASE) expect(packages).toEqual(await packagesIn(SANDBOX_IMAGE));
    else expect(packages).toEqual(expect.arrayContaining(packageList()));
  });
});

/** The real base where it is to be had, else one made from packages, so that the Dockerfile's own lines are run everywhere. */
async function baseForDockerfile() {
  const log = path.join(home, "base.log");
  if (await inspectImage(engine, BASE_IMAGE)) return BASE_IMAGE;
  const pulled = await pullImage(engine, BASE_IMAGE, { log, firstAnswerMs: 6_000 }).then(
    () => true,
    () => false,
  );
  if (pulled) return BASE_IMAGE;
  if (await inspectImage(engine, PLAIN_BASE)) return PLAIN_BASE;
  const program = findProgram("mmdebstrap");
  if (!program) return undefined;
  const fileSystem = await debianFileSystem({ packages: [], finish: false, log, program });
  const settings = ["ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 'CMD ["bash"]'];
  await importImage(engine, PLAIN_BASE, fileSystem, { log, settings });
  return PLAIN_BASE;
}

describe("the images for tests", () => {
  test("the busybox test image is about 2 MB and has only sh, its applets and a /workspace", async () => {
    const { Size: bytes } = await inspectImage(engine, BUSYBOX_IMAGE);
    expect(bytes).toBeLessThan(3e6);
    expect((await runIn(BUSYBOX_IMAGE, "pwd; readlink /bin/sh; ls /bin/bash 2>&1")).text).toBe(
      "/workspace\nbusybox\nls: /bin/bash: No such file or directory",
    );
  });

  test("the entrypoint test image fails at once unless its ENTRYPOINT is replaced", async () => {
    const asMade = { User: undefined };
    expect((await runIn(ENTRYPOINT_IMAGE, "echo never", asMade)).exitCode).toBe(1);
    const replaced = await runIn(ENTRYPOINT_IMAGE, "", {
      ...asMade,
      Entrypoint: ["sh", "-c", "id -u; echo $IMAGE_SAYS"],
    });
    expect(replaced).toEqual({ exitCode: 0, text: "4242\nhello" });
  });
});
