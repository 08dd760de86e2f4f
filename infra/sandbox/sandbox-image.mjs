/**
 * Makes the sandbox image on the engine: with the Dockerfile when its base image is there or can be pulled, else from
 * Debian packages (mmdebstrap, then an import).
 */
import { createReadStream, createWriteStream, mkdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { aptInstall, aptStanding, installAdvice } from "../setup/apt.mjs";
import { SetupProblem } from "../setup/problem.mjs";
import { tailOf } from "../setup/run-command.mjs";
import { findProgram } from "../setup/search-path.mjs";
import { debianFileSystem } from "./bootstrap.mjs";
import { buildImage, importImage, inspectImage, pullImage, removeNameless } from "./engine-images.mjs";
import {
  BASE_IMAGE,
  fingerprint,
  folder,
  IMAGE_SETTINGS,
  packageList,
  RECIPE_FILES,
  RECIPE_LABEL,
  VARIANTS,
} from "./recipe.mjs";
import { tarOf } from "./tar.mjs";

const FIRST_ANSWER_MS = 6_000;

/** @typedef {import('./recipe.mjs').Variant} Variant */

/**
 * @param {import('../setup/engine-api.mjs').Engine} engine
 * @param {Variant} [variant]
 */
export async function findSandboxImage(engine, variant = "base") {
  const image = await inspectImage(engine, VARIANTS[variant].image);
  const upToDate = image?.Config?.Labels?.[RECIPE_LABEL] === fingerprint(variant);
  return { name: VARIANTS[variant].image, image, upToDate };
}

/**
 * @param {import('../setup/context.mjs').Context} context with an engine
 * @param {(text: string) => void} progress
 * @param {Variant} [variant]
 */
export async function makeSandboxImage(context, progress, variant = "base") {
  const { engine } = context;
  if (!engine) throw new Error("makeSandboxImage needs an engine");
  const log = path.join(context.places.logs, "sandbox-image.log");
  mkdirSync(path.dirname(log), { recursive: true });
  const before = await findSandboxImage(engine, variant);

  progress(`looking for ${BASE_IMAGE}`);
  const refusal = await baseRefusal(engine, log);
  if (refusal) {
    await importFromPackages(context, progress, variant, log, refusal);
  } else {
    progress(`building ${before.name} from its Dockerfile`);
    try {
      await buildFromDockerfile(engine, log, { variant });
    } catch (error) {
      // The base was there but the mirror was not reachable from inside the build; the host may still reach it.
      await importFromPackages(
        context,
        progress,
        variant,
        log,
        `the Dockerfile's build failed (${error.message})`,
      );
    }
  }
  if (before.image) await removeNameless(engine, before.image.Id);
}

/**
 * @param {import('../setup/engine-api.mjs').Engine} engine
 * @param {string} log
 * @param {{ variant?: Variant, name?: string, base?: string }} [options] another name and base, for tests
 */
export async function buildFromDockerfile(engine, log, options = {}) {
  const { variant = "base", name = VARIANTS[variant].image, base = BASE_IMAGE } = options;
  const context = tarOf(
    RECIPE_FILES.map((file) => ({ name: file, bytes: readFileSync(path.join(folder, file)) })),
  );
  const buildArgs = { ...proxies(), BASE: base, LISTS: VARIANTS[variant].lists.join(" ") };
  const labels = { [RECIPE_LABEL]: fingerprint(variant) };
  await buildImage(engine, name, context, { log, buildArgs, labels });
}

/** Arguments every Dockerfile knows without declaring them, and which stay out of the image. */
function proxies() {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name, value]) => value && /^(https?|no)_proxy$/i.test(name)),
  );
}

/** Why the base image is not to be had; undefined when the engine has it. */
async function baseRefusal(engine, log) {
  if (await inspectImage(engine, BASE_IMAGE)) return undefined;
  try {
    await pullImage(engine, BASE_IMAGE, { log, firstAnswerMs: FIRST_ANSWER_MS });
    return undefined;
  } catch (error) {
    return `${BASE_IMAGE} could not be pulled (${error.message})`;
  }
}

async function importFromPackages(context, progress, variant, log, reason) {
  const program = await ensureMmdebstrap(context, progress, reason);
  const packages = packageList(variant);
  progress(
    `building ${VARIANTS[variant].image} from ${packages.length} Debian packages, since ${reason.split(" (")[0]}`,
  );
  const file = path.join(context.places.state, `image-${variant}.tar`);
  mkdirSync(context.places.state, { recursive: true });
  try {
    // An engine hangs up on a body that does not begin within five minutes, and packages may take longer.
    await pipeline(await debianFileSystem({ packages, finish: true, log, program }), createWriteStream(file));
    await importImage(context.engine, VARIANTS[variant].image, createReadStream(file), {
      log,
      settings: [...IMAGE_SETTINGS, `LABEL ${RECIPE_LABEL}=${fingerprint(variant)}`],
    });
  } catch (error) {
    throw new SetupProblem("The sandbox image could not be built.", {
      why: `${reason}; then from packages: ${error.message}`,
      fix: [
        `make ${BASE_IMAGE} available to the engine (docker load), or a Debian mirror to apt, then run this again`,
      ],
      logFile: path.relative(context.places.root, log),
      logTail: tailOf(log),
    });
  } finally {
    rmSync(file, { force: true });
  }
}

async function ensureMmdebstrap(context, progress, reason) {
  const packages = ["mmdebstrap", "debian-archive-keyring"];
  if (!findProgram("mmdebstrap")) {
    if (aptStanding() !== "root") {
      throw new SetupProblem("The sandbox image could not be built.", {
        why: `${reason}, and mmdebstrap, which builds it from Debian packages instead, is not installed`,
        fix: [
          `make ${BASE_IMAGE} available to the engine (docker pull or docker load)`,
          ...installAdvice(packages).map((line) => `or: ${line}`),
        ],
      });
    }
    progress("installing mmdebstrap");
    await aptInstall(context, "sandbox-image", packages);
  }
  return findProgram("mmdebstrap") ?? "mmdebstrap";
}
