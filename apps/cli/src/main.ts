#!/usr/bin/env node
import { isFault } from "@berth/protocol";
import { exitBadConfig, readConfig } from "./config.ts";
import { runTour } from "./tour.ts";

const help = `berth runs AI agents' commands in isolated per-tenant sandboxes.

  berth tour     show a sandbox at work on this machine's engine: run, write, read, limits, a timeout

Environment
  DOCKER_HOST       the container engine; its default socket when absent
  BERTH_IMAGE       image of the sandboxes (berth-sandbox:bookworm)
  BERTH_RUNTIME     OCI runtime, such as runsc; the engine's default when absent
  BERTH_WORKSPACES  directory of the workspaces (.berth/workspaces)
`;

const exitUsage = 64;

async function main(argv: readonly string[]): Promise<number> {
  const [command, ...rest] = argv;
  if (command === "--help" || command === "-h" || command === "help" || rest.includes("--help")) {
    process.stdout.write(help);
    return 0;
  }
  if (command !== "tour" || rest.length > 0) {
    const unknown = command === undefined ? "no command given" : `unknown: ${argv.join(" ")}`;
    process.stderr.write(`berth: ${unknown}\n\n${help}`);
    return exitUsage;
  }
  const read = readConfig();
  if ("problems" in read) {
    process.stderr.write(
      `berth: the configuration cannot be used:\n${read.problems.map((one) => `  ${one}\n`).join("")}`,
    );
    return exitBadConfig;
  }
  try {
    return await runTour(read.config);
  } catch (error) {
    if (!isFault(error)) throw error;
    process.stderr.write(`berth: ${error.message}\n  code ${error.code}: see docs/faults.md\n`);
    return 1;
  }
}

process.exitCode = await main(process.argv.slice(2));
