/**
 * Builds the sandbox image anew, whether or not the one there is up to date. Set-up does it when it is not.
 *
 *   node infra/sandbox/build.mjs                      berth-sandbox:bookworm
 *   node infra/sandbox/build.mjs --build-essential    berth-sandbox:bookworm-build, with a C compiler and make
 */
import { newContext } from "../setup/context.mjs";
import { repoRoot } from "../setup/places.mjs";
import { SetupProblem } from "../setup/problem.mjs";
import { Report } from "../setup/report.mjs";
import { engineStep } from "../setup/step-engine.mjs";
import { findSandboxImage, makeSandboxImage } from "./sandbox-image.mjs";

async function main(argv) {
  const unknown = argv.find((word) => word !== "--build-essential");
  if (unknown)
    throw new SetupProblem(`Unknown option: ${unknown}`, { fix: ["build.mjs [--build-essential]"] });
  const variant = argv.length > 0 ? { buildEssential: true } : {};
  const context = newContext(repoRoot);
  const found = await engineStep.find(context);
  if (!found.ready || !context.engine)
    throw new SetupProblem(`Missing: ${found.text}.`, { fix: ["npm run setup"] });
  const report = new Report(process.stdout);
  await report.during("sandbox image", (progress) => makeSandboxImage(context, progress, variant));
  const { name, image } = await findSandboxImage(context.engine, variant);
  report.line("sandbox image", `${name} (${Math.round(image.Size / 1e6)} MB)`);
}

main(process.argv.slice(2)).catch((error) => {
  process.stderr.write(`${error instanceof SetupProblem ? error.toText() : error.stack}\n`);
  process.exitCode = 1;
});
