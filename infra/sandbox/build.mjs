/**
 * Builds sandbox images anew, whether or not those there are up to date. Set-up makes `base` when it is not.
 *
 *   npm run image             what there is
 *   npm run image -- base     berth-sandbox:bookworm: a shell, the usual tools, Python and Node
 *   npm run image -- build    berth-sandbox:bookworm-build: with a C and C++ compiler and make
 *   npm run image -- full     berth-sandbox:bookworm-full: with pip, venv, npm, Go and Rust, too
 *   npm run image -- browser  berth-sandbox:bookworm-browser: with Chromium, without a screen
 */
import { newContext } from "../setup/context.mjs";
import { repoRoot } from "../setup/places.mjs";
import { SetupProblem } from "../setup/problem.mjs";
import { Report } from "../setup/report.mjs";
import { engineStep } from "../setup/step-engine.mjs";
import { VARIANTS } from "./recipe.mjs";
import { findSandboxImage, makeSandboxImage } from "./sandbox-image.mjs";

const names = /** @type {import('./recipe.mjs').Variant[]} */ (Object.keys(VARIANTS));

async function main(argv) {
  const unknown = argv.find((word) => !names.includes(word));
  if (unknown)
    throw new SetupProblem(`There is no variant ${unknown}.`, {
      fix: [`npm run image -- ${names.join("|")}`],
    });
  const context = newContext(repoRoot);
  const found = await engineStep.find(context);
  if (!found.ready || !context.engine)
    throw new SetupProblem(`Missing: ${found.text}.`, { fix: ["npm run setup"] });
  const report = new Report(process.stdout);
  for (const variant of argv)
    await report.during(variant, (progress) => makeSandboxImage(context, progress, variant));
  for (const variant of argv.length > 0 ? argv : names) {
    const { name, image, upToDate } = await findSandboxImage(context.engine, variant);
    const state = image
      ? `${Math.round(image.Size / 1e6)} MB${upToDate ? "" : ", of an older recipe"}`
      : "not built";
    report.line(variant, `${name} (${state})`);
  }
}

main(process.argv.slice(2)).catch((error) => {
  process.stderr.write(`${error instanceof SetupProblem ? error.toText() : error.stack}\n`);
  process.exitCode = 1;
});
