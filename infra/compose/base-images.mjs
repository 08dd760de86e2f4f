/**
 * Makes the images that the compose file would take from a registry, for machines that reach npm and a Debian mirror
 * but no registry. What is up to date stays as it is.
 *
 *   node infra/compose/base-images.mjs
 *   docker compose -f docker-compose.yml -f infra/compose/offline.yml up -d --scale worker=3
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { debianFileSystem } from "../sandbox/bootstrap.mjs";
import { buildImage, importImage, inspectImage, removeNameless } from "../sandbox/engine-images.mjs";
import { tarOf } from "../sandbox/tar.mjs";
import { aptInstall, aptStanding, installAdvice } from "../setup/apt.mjs";
import { newContext } from "../setup/context.mjs";
import { NODE_VERSION, PNPM_VERSION, repoRoot } from "../setup/places.mjs";
import { SetupProblem } from "../setup/problem.mjs";
import { Report } from "../setup/report.mjs";
import { tailOf } from "../setup/run-command.mjs";
import { findProgram } from "../setup/search-path.mjs";
import { engineStep } from "../setup/step-engine.mjs";
import { initStep } from "../setup/step-init.mjs";
import { npmInstall } from "../setup/step-node.mjs";
import {
  carryScript,
  DEBIAN_IMAGE,
  fingerprint,
  NODE_DOCKERFILE,
  NODE_IMAGE,
  PACKAGES,
  RECIPE_LABEL,
  REDIS_DOCKERFILE,
  REDIS_IMAGE,
  UNPACKED,
} from "./base-recipe.mjs";

/** Whom this machine trusts, so that a proxy of its owner's is trusted in the build too. It stays out of the apps' images. */
const TRUSTED = "/etc/ssl/certs/ca-certificates.crt";

/** In this order: the second and the third are made of the first. */
const MAKERS = { [DEBIAN_IMAGE]: makeDebian, [NODE_IMAGE]: makeNode, [REDIS_IMAGE]: makeRedis };

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
  const initId = await builtInit(context, progress);
  const made = [];
  for (const [name, make] of Object.entries(MAKERS)) {
    const before = await inspectImage(engine, name);
    const recipe = fingerprint(name, initId);
    if (before?.Config?.Labels?.[RECIPE_LABEL] === recipe) continue;
    progress(`making ${name}`);
    try {
      await make(context, { log, recipe, initId });
    } catch (error) {
      if (error instanceof SetupProblem) throw error;
      throw new SetupProblem(`${name} could not be made.`, {
        why: error.message,
        logFile: path.relative(context.places.root, log),
        logTail: tailOf(log),
      });
    }
    if (before) await removeNameless(engine, before.Id);
    made.push(name);
  }
  return made;
}

async function makeDebian(context, { log, recipe }) {
  const program = await ensureMmdebstrap(context);
  const fileSystem = await debianFileSystem({
    packages: PACKAGES,
    finish: false,
    log,
    program,
    more: UNPACKED,
  });
  const settings = [
    "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    `LABEL ${RECIPE_LABEL}=${recipe}`,
  ];
  await importImage(context.engine, DEBIAN_IMAGE, fileSystem, { log, settings });
}

async function makeNode(context, { log, recipe, initId }) {
  const node = await fromNpm(context, "node", `node-linux-${process.arch}`, NODE_VERSION, "bin/node");
  const pnpm = await fromNpm(context, "pnpm", "pnpm", PNPM_VERSION, "pnpm");
  const init = path.join(context.places.root, "packages/init/build/init");
  const program = (name, from) => ({
    name: `root/usr/local/${name}`,
    mode: 0o755,
    bytes: readFileSync(from),
  });
  const build = tarOf([
    { name: "Dockerfile", bytes: Buffer.from(NODE_DOCKERFILE) },
    program("bin/node", node),
    program("bin/pnpm", pnpm),
    program(`lib/berth/init-${initId}`, init),
    { name: `root${TRUSTED}`, bytes: existsSync(TRUSTED) ? readFileSync(TRUSTED) : Buffer.alloc(0) },
  ]);
  await buildImage(context.engine, NODE_IMAGE, build, { log, labels: { [RECIPE_LABEL]: recipe } });
}

async function makeRedis(context, { log, recipe }) {
  const build = tarOf([
    { name: "Dockerfile", bytes: Buffer.from(REDIS_DOCKERFILE) },
    { name: "carry.sh", bytes: readFileSync(carryScript) },
  ]);
  await buildImage(context.engine, REDIS_IMAGE, build, { log, labels: { [RECIPE_LABEL]: recipe } });
}

/** What init, built on this machine, calls its build: a hash of its sources, so the apps' build can tell whether it fits. */
async function builtInit(context, progress) {
  if (!(await initStep.find(context)).ready) await initStep.make(context, progress);
  const source = readFileSync(path.join(context.places.root, "packages/init/build/build-id.c"), "utf8");
  const id = /"([0-9a-f]{12})"/.exec(source)?.[1];
  if (!id) throw new Error("packages/init/build/build-id.c names no build");
  return id;
}

/** The program, from the folder where set-up keeps the same package; fetched there when it is not. */
async function fromNpm(context, name, spec, version, file) {
  const folder = path.join(context.places.tools, `${name}-${version}`);
  const program = path.join(folder, "node_modules", spec, file);
  if (!existsSync(program)) await npmInstall(context, "base-images", folder, `${spec}@${version}`);
  return program;
}

async function ensureMmdebstrap(context) {
  const packages = ["mmdebstrap", "debian-archive-keyring"];
  const found = findProgram("mmdebstrap");
  if (found) return found;
  if (aptStanding() !== "root") {
    throw new SetupProblem("mmdebstrap, which makes images from Debian packages, is not installed.", {
      fix: installAdvice(packages),
    });
  }
  await aptInstall(context, "base-images", packages);
  return findProgram("mmdebstrap") ?? "mmdebstrap";
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
