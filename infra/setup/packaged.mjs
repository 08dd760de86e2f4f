#!/usr/bin/env node
/**
 * The way in from the npm package `berth`: makes the machine ready for the commands that run a fleet on it, then runs the
 * command. Until it has looked at its version, any Node since 18 can read it.
 */
import { NODE_MAJOR } from "./places.mjs";

const FLEET_COMMANDS = new Set(["dev", "tour"]);

async function main([command = "", ...rest]) {
  if (Number(process.versions.node.split(".")[0]) < NODE_MAJOR) {
    process.stderr.write(`berth: it needs Node ${NODE_MAJOR} or newer, and this is ${process.version}\n`);
    process.exit(78);
  }
  const asksForHelp = rest.includes("--help") || rest.includes("-h");
  if (FLEET_COMMANDS.has(command) && !asksForHelp) await makeReady();
  await import("../../apps/cli/src/main.ts");
}

async function makeReady() {
  const { prepareForFleet } = await import("./prepare-for-fleet.mjs");
  const { SetupProblem } = await import("./problem.mjs");
  try {
    Object.assign(process.env, await prepareForFleet(process.env));
  } catch (error) {
    if (!(error instanceof SetupProblem)) throw error;
    process.stderr.write(`berth: this machine is not ready for a fleet: ${error.toText()}\n`);
    process.exit(1);
  }
}

await main(process.argv.slice(2));
