import { SANDBOX_IMAGE } from "../sandbox/recipe.mjs";
import { findSandboxImage, makeSandboxImage } from "../sandbox/sandbox-image.mjs";
import { findTestImages, makeTestImages } from "../sandbox/test-images.mjs";
import { askEngine } from "./engine-api.mjs";
import { engineStep } from "./step-engine.mjs";

/** @type {import('./context.mjs').Step} */
export const sandboxImageStep = {
  name: "sandbox image",
  shared: true,
  async find(context) {
    const engine = await engineFor(context);
    const needs = await roomFor(engine, 900e6);
    if (!engine) return { ready: false, text: `${SANDBOX_IMAGE} (unknown until an engine answers)`, needs };
    const { image, upToDate } = await findSandboxImage(engine);
    if (image && upToDate)
      return { ready: true, text: `${SANDBOX_IMAGE} (${Math.round(image.Size / 1e6)} MB)` };
    return {
      ready: false,
      text: image ? `${SANDBOX_IMAGE} of the current recipe (an older one is there)` : SANDBOX_IMAGE,
      needs,
    };
  },
  make: (context, progress) => makeSandboxImage(context, progress),
};

/** @type {import('./context.mjs').Step} */
export const testImagesStep = {
  name: "test images",
  shared: true,
  async find(context) {
    const engine = await engineFor(context);
    const needs = await roomFor(engine, 10e6);
    if (!engine)
      return { ready: false, text: "images for the tests (unknown until an engine answers)", needs };
    const missing = await findTestImages(engine);
    if (missing.length === 0) return { ready: true, text: "berth-busybox:test, berth-entrypoint:test" };
    return { ready: false, text: missing.join(", "), needs };
  },
  make: (context, progress) => makeTestImages(context, progress),
};

// All steps look at once, so the engine's own step may not have found it yet.
async function engineFor(context) {
  if (!context.engine) await engineStep.find(context);
  return context.engine;
}

/** Images land where the engine keeps its data; for an engine on another machine that is not our disk to judge. */
async function roomFor(engine, bytes) {
  if (!engine) return [{ at: "/var/lib/docker", bytes }];
  if (!engine.request.socketPath) return [];
  const { DockerRootDir: at } = await askEngine(engine, "GET", "/info");
  return at ? [{ at, bytes }] : [];
}
