#!/usr/bin/env node
import { isFault } from "@berth/protocol";
import { exitBadConfig, readConfig } from "./config.ts";
import { runFleetTour } from "./fleet-tour.ts";
import { runTour } from "./tour.ts";

const help = `berth runs AI agents' commands in isolated per-tenant sandboxes.

  berth tour            a sandbox at work on this machine's engine, then a fleet of two workers and a batch
  berth tour --serve    the same, and the fleet stays up until Ctrl-C

Environment
  REDIS_URL         a Redis to use; one of our own is started when absent
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
  const serve = rest.length === 1 && rest[0] === "--serve";
  if (command !== "tour" || (rest.length > 0 && !serve)) {
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
    const failures = (await runTour(read.config)) + (await runFleetTour(read.config, { serve }));
    process.stdout.write(
      failures === 0 ? "\nAll of it as promised.\n" : `\n${failures} steps did not go as promised.\n`,
    );
    return failures === 0 ? 0 : 1;
  } catch (error) {
    if (!isFault(error)) throw error;
    process.stderr.write(`berth: ${error.message}\n  code ${error.code}: see docs/faults.md\n`);
    return 1;
  }
}

process.exitCode = await main(process.argv.slice(2));
