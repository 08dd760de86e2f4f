import path from "node:path";
import { SANDBOX_IMAGE } from "../sandbox/recipe.mjs";
import { newContext } from "./context.mjs";
import { DEFAULT_ADDRESS } from "./engine-api.mjs";
import { repoRoot } from "./places.mjs";
import { Report } from "./report.mjs";
import { setUp } from "./setup.mjs";
import { engineStep } from "./step-engine.mjs";
import { sandboxImageStep } from "./step-images.mjs";
import { packagedInitStep } from "./step-init.mjs";
import { redisStep } from "./step-redis.mjs";

/**
 * The part of the set-up that a fleet from the npm package needs: Redis, an engine, init and the image. Says nothing when all
 * are there. Its logs are beside what the fleet keeps, in the folder that the command was called in.
 * @param {NodeJS.ProcessEnv} environment
 * @returns {Promise<{ DOCKER_HOST?: string }>} what was found out for the fleet
 */
export async function prepareForFleet(environment) {
  const context = newContext(repoRoot, environment);
  const state = path.resolve(".berth");
  context.places = {
    ...context.places,
    state,
    logs: path.join(state, "log"),
    lock: path.join(state, "setup.lock"),
  };
  const steps = [redisStep, engineStep, packagedInitStep];
  // Workers pull an image of the user's own choice.
  if ((environment.BERTH_IMAGE || SANDBOX_IMAGE) === SANDBOX_IMAGE) steps.push(sandboxImageStep);
  const findings = await Promise.all(steps.map((step) => step.find(context)));
  if (!findings.every((finding) => finding.ready)) await setUp(context, steps, new Report(process.stderr));
  const address = context.engine?.address ?? DEFAULT_ADDRESS;
  return address === DEFAULT_ADDRESS ? {} : { DOCKER_HOST: address };
}
