/**
 * Makes the images that the compose file would take from a registry, for machines that reach npm and a Debian mirror
 * but no registry. What is up to date stays as it is.
 *
 *   npm run setup && node infra/compose/base-images.mjs
 *   docker compose -f docker-compose.yml -f infra/compose/offline.yml up -d --scale worker=3
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { buildImage, importImage, inspectImage, removeNameless } from "../sandbox/engine-images.mjs";
import { SANDBOX_IMAGE } from "../sandbox/recipe.mjs";
import { tarOf } from "../sandbox/tar.mjs";
import { newContext } from "../setup/context.mjs";
import { NODE_VERSION, PNPM_VERSION, repoRoot } from "../setup/places.mjs";
import { SetupProblem } from "../setup/problem.mjs";
import { Report } from "../setup/report.mjs";
import { runLogged, tailOf } from "../setup/run-command.mjs";
import { findProgram } from "../setup/search-path.mjs";
import { engineStep } from "../setup/step-engine.mjs";
import { initStep } from "../setup/step-init.mjs";
import { npmInstall } from "../setup/step-node.mjs";
import {
  carryScript,
  fingerprint,
  NODE_DOCKERFILE,
  NODE_IMAGE,
  RECIPE_LABEL,
  REDIS_IMAGE,
  REDIS_SETTINGS,
  REDIS_UID,
} from "./base-recipe.mjs";

/** This machine's certificates, so that the build trusts a proxy that inspects TLS. The apps' images do not get them. */
const TRUSTED = "/etc/ssl/certs/ca-certificates.crt";

/**
 * @param {import('../setup/context.mjs').Context} context with an engine
 * @param {(text: string) => void} progress
 * @returns {Promise<string[]>} the images that had to be made
 */
export async function makeBaseImages(context, progress) {
  const { engine } = context;
  if (!engine) throw new Error("makeBaseImages needs an engine");
  const log = path.join(context.places.logs, "base-images.log");
  mkdirSync(path.dirname(log), { recursive: true });
  const made = [];
  for (const [name, prepare] of Object.entries({ [NODE_IMAGE]: prepareNode, [REDIS_IMAGE]: prepareRedis })) {
    try {
      const { recipe, make } = await prepare(context, log);
      const before = await inspectImage(engine, name);
      if (before?.Config?.Labels?.[RECIPE_LABEL] === recipe) continue;
      progress(`making ${name}`);
      await make();
      if (before) await removeNameless(engine, before.Id);
      made.push(name);
    } catch (error) {
      if (error instanceof SetupProblem) throw error;
      throw new SetupProblem(`${name} could not be made.`, {
        why: error.message,
        logFile: path.relative(context.places.root, log),
        logTail: tailOf(log),
      });
    }
  }
  return made;
}

async function prepareNode(context, log) {
  const { engine, places } = context;
  const base = await inspectImage(engine, SANDBOX_IMAGE);
  if (!base) throw new SetupProblem(`Missing: ${SANDBOX_IMAGE}.`, { fix: ["npm run setup"] });
  const initId = await builtInit(context);
  const trusted = existsSync(TRUSTED) ? readFileSync(TRUSTED) : Buffer.alloc(0);
  const recipe = fingerprint(base.Id, NODE_DOCKERFILE, NODE_VERSION, PNPM_VERSION, initId, trusted);
  const make = async () => {
    const node = await fromNpm(context, "node", `node-linux-${process.arch}`, NODE_VERSION, "bin/node");
    const pnpm = await fromNpm(context, "pnpm", "pnpm", PNPM_VERSION, "pnpm");
    const init = path.join(places.root, "packages/init/build/init");
    const build = tarOf([
      { name: "Dockerfile", bytes: Buffer.from(NODE_DOCKERFILE) },
      program("root/usr/local/bin/node", node),
      program("root/usr/local/bin/pnpm", pnpm),
      program(`root/usr/local/lib/berth/init-${initId}`, init),
      { name: `root${TRUSTED}`, bytes: trusted },
    ]);
    await buildImage(engine, NODE_IMAGE, build, { log, labels: { [RECIPE_LABEL]: recipe } });
  };
  return { recipe, make };
}

async function prepareRedis(context, log) {
  const programs = ["redis-server", "redis-cli"].map((name) => {
    const found = findProgram(name);
    if (!found) throw new SetupProblem(`Missing: ${name}.`, { fix: ["npm run setup, without REDIS_URL"] });
    return found;
  });
  const parts = [...programs, carryScript].map((file) => readFileSync(file));
  const recipe = fingerprint(...parts, JSON.stringify(REDIS_SETTINGS), String(REDIS_UID));
  const make = async () => {
    const root = mkdtempSync(path.join(os.tmpdir(), "berth-redis-image-"));
    try {
      await runLogged("sh", [carryScript, root, ...programs], { log, root: context.places.root });
      const files = readdirSync(root, { recursive: true }).map(String);
      const entries = files
        .filter((name) => statSync(path.join(root, name)).isFile())
        .map((name) => program(name, path.join(root, name)));
      const fileSystem = tarOf([...entries, { name: "data/", uid: REDIS_UID }]);
      const settings = [...REDIS_SETTINGS, `LABEL ${RECIPE_LABEL}=${recipe}`];
      await importImage(context.engine, REDIS_IMAGE, fileSystem, { log, settings });
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  };
  return { recipe, make };
}

function program(name, from) {
  return { name, mode: 0o755, bytes: readFileSync(from) };
}

/** The build id of the init that was built on this machine: a hash of its sources, which the apps' build compares. */
async function builtInit(context) {
  if (!(await initStep.find(context)).ready) await initStep.make(context, () => undefined);
  const source = readFileSync(path.join(context.places.root, "packages/init/build/build-id.c"), "utf8");
  const id = /"([0-9a-f]{12})"/.exec(source)?.[1];
  if (!id) throw new Error("packages/init/build/build-id.c names no build");
  return id;
}

/** The path of a program in the folder where set-up keeps its package. Fetches the package if it is missing. */
async function fromNpm(context, name, spec, version, file) {
  const folder = path.join(context.places.tools, `${name}-${version}`);
  const found = path.join(folder, "node_modules", spec, file);
  if (!existsSync(found)) await npmInstall(context, "base-images", folder, `${spec}@${version}`);
  return found;
}

async function main() {
  const context = newContext(repoRoot);
  const found = await engineStep.find(context);
  if (!found.ready) throw new SetupProblem(`Missing: ${found.text}.`, { fix: ["npm run setup"] });
  const report = new Report(process.stdout);
  const made = await report.during("base images", (progress) => makeBaseImages(context, progress));
  report.line("base images", made.length > 0 ? `made ${made.join(", ")}` : "up to date");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main().catch((error) => {
    process.stderr.write(`${error instanceof SetupProblem ? error.toText() : error.stack}\n`);
    process.exitCode = 1;
  });
}
