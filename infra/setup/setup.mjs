/**
 * The set-up itself. First every step looks, all at once and without a lock: on a machine that is ready that is all,
 * about a second. Otherwise the disk is judged by what is missing, and the steps are made one after another, each
 * looked at again under the lock, since another set-up may have done it while we waited.
 */
import os from "node:os";
import path from "node:path";
import { judgeDisk } from "./disk-space.mjs";
import { takeLock } from "./lock.mjs";
import { SetupProblem } from "./problem.mjs";
import { browserStep } from "./step-browser.mjs";
import { buildToolsStep } from "./step-build-tools.mjs";
import { composeStep } from "./step-compose.mjs";
import { dependenciesStep } from "./step-dependencies.mjs";
import { engineStep } from "./step-engine.mjs";
import { sandboxImageStep, testImagesStep } from "./step-images.mjs";
import { initStep } from "./step-init.mjs";
import { nodeStep } from "./step-node.mjs";
import { pnpmStep } from "./step-pnpm.mjs";
import { redisStep } from "./step-redis.mjs";
import { testToolsStep } from "./step-test-tools.mjs";

/** @param {{ testImages: boolean, browser: boolean }} options */
export function stepsFor({ testImages, browser }) {
  const steps = [
    nodeStep,
    pnpmStep,
    dependenciesStep,
    redisStep,
    engineStep,
    buildToolsStep,
    initStep,
    sandboxImageStep,
  ];
  if (testImages) steps.push(testImagesStep, composeStep, testToolsStep);
  if (browser) steps.push(browserStep);
  return steps;
}

/**
 * Looks and reports what is missing; changes nothing.
 * @param {import('./context.mjs').Context} context
 * @param {import('./context.mjs').Step[]} steps
 * @param {import('./report.mjs').Report} report
 * @returns {Promise<boolean>} whether everything is there
 */
export async function check(context, steps, report) {
  const findings = await findAll(context, steps);
  let enoughDisk = true;
  try {
    report.line("disk", judgeDisk(needsOf(context, findings)));
  } catch (error) {
    if (!(error instanceof SetupProblem)) throw error;
    enoughDisk = false;
    report.line("disk", error.message);
  }
  steps.forEach((step, index) => {
    const finding = findings[index];
    report.line(step.name, finding.ready ? finding.text : `missing: ${finding.text}`);
  });
  const missing = findings.filter((finding) => !finding.ready).length;
  report.line("", missing > 0 ? `${missing} missing; npm run setup makes them` : "nothing is missing");
  return enoughDisk && missing === 0;
}

/**
 * @param {import('./context.mjs').Context} context
 * @param {import('./context.mjs').Step[]} steps
 * @param {import('./report.mjs').Report} report
 */
export async function setUp(context, steps, report) {
  const findings = await findAll(context, steps);
  report.line("disk", judgeDisk(needsOf(context, findings)));
  if (findings.every((finding) => finding.ready)) {
    steps.forEach((step, index) => {
      report.line(step.name, findings[index].text);
    });
    return;
  }
  const release = await takeLock(context.places.lock, {
    onWait: (pid) => report.line("waiting", `another set-up of this clone is running (pid ${pid})`),
    onDeadOwner: (pid) => report.line("", `a set-up was cut off (pid ${pid}); going on from there`),
  });
  try {
    for (const step of steps) await makeReady(context, step, report);
  } finally {
    release();
  }
}

async function makeReady(context, step, report) {
  let finding = await step.find(context);
  if (!finding.ready) {
    const startedAt = Date.now();
    await report.during(step.name, async (progress) => {
      const release = step.shared ? await takeLock(machineLock(), waitingFor(progress)) : () => undefined;
      try {
        // Asked again: the set-up we waited for may have been a clone's that needed the same.
        if (!(await step.find(context)).ready) await step.make(context, progress);
      } finally {
        release();
      }
    });
    finding = await step.find(context);
    if (!finding.ready)
      throw new SetupProblem(`${step.name} is still missing after it was made: ${finding.text}.`);
    finding = {
      ...finding,
      text: `${finding.text} after ${Math.round((Date.now() - startedAt) / 1000)} s`,
    };
  }
  report.line(step.name, finding.text);
}

function waitingFor(progress) {
  return { onWait: (pid) => progress(`waiting for another clone's set-up (pid ${pid})`) };
}

/** apt, the engine and its images belong to the machine: clones of the same user take turns. */
function machineLock() {
  return path.join(os.tmpdir(), `berth-setup-${process.getuid?.() ?? "user"}.lock`);
}

function findAll(context, steps) {
  return Promise.all(steps.map((step) => step.find(context)));
}

function needsOf(context, findings) {
  const missing = findings.flatMap((finding) => (finding.ready ? [] : (finding.needs ?? [])));
  return [{ at: context.places.root, bytes: 0 }, ...missing];
}
