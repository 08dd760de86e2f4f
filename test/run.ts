/**
 * Everything `npm test` runs after the set-up: lint, types, every test, and a look at what was left behind. Ends with
 * the line `N passed, N failed`. Arguments go to vitest, and then only it runs. A whole run starts the apps as they are
 * shipped: that is what users get, and costs a third of a start from source. A run of some files starts them from source.
 */
import { spawn } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import Docker from "dockerode";

const reportFile = ".berth/vitest.json";
/** How long the last whole run on this machine took, in milliseconds. */
const durationFile = ".berth/test-run-ms";
/** Where `build.ts` puts the apps as they are shipped. */
const programs = resolve(".berth/command/lib");

interface Count {
  passed: number;
  failed: number;
  skipped: number;
}

const { values, positionals } = parseArgs({
  args: process.argv.slice(2),
  allowPositionals: true,
  strict: false,
  options: { help: { type: "boolean", short: "h" } },
});
if (values.help) {
  console.log(`npm test                 lint, types, every test: about 20 minutes on two cores
npm test -- packages     the packages' own tests: under three minutes
npm test -- FILE…        only the tests whose path has one of these in it
npm test -- FILE -t NAME only those whose title matches; any vitest option works`);
  process.exit(0);
}
const vitestArguments = process.argv.slice(2);
const onlyTests = positionals.length > 0 || vitestArguments.length > 0;

const total: Count = { passed: 0, failed: 0, skipped: 0 };
const before = await containersOfOurs();
const began = performance.now();
if (!onlyTests) {
  console.log(await outlook());
  await step("lint", "biome", ["ci", "--error-on-warnings", "."]);
  await step("types and builds", "node", ["--conditions=@berth/source", "infra/pack/build.ts"]);
  await step("types of tests and infra", "tsc", ["-b"]);
  process.env.BERTH_TEST_PROGRAMS = programs;
}
await tests();
if (!onlyTests) await writeFile(durationFile, String(Math.round(performance.now() - began)));
const left = (await containersOfOurs()).filter((name) => !before.includes(name));
count("nothing left behind", left.length === 0, left.join(", "));

const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : "";
console.log(`\n${total.passed} passed, ${total.failed} failed${skipped}`);
process.exit(total.failed === 0 ? 0 : 1);

/** What a person wants to know before they wait. */
async function outlook(): Promise<string> {
  const lastMs = Number(await readFile(durationFile, "utf8").catch(() => 0));
  const last = lastMs > 0 ? `; the last whole run here took ${Math.ceil(lastMs / 60_000)} min` : "";
  return `Every test takes about 20 minutes on two cores${last}.
Less: npm test -- packages (under three minutes), or any part of a path: npm test -- cancel -t "at once"
`;
}

async function step(title: string, command: string, args: string[]): Promise<void> {
  count(title, (await run(command, args)) === 0);
}

function count(title: string, passed: boolean, detail = ""): void {
  console.log(`${passed ? "✓" : "✗"} ${title}${detail === "" ? "" : `: ${detail}`}`);
  if (passed) total.passed++;
  else total.failed++;
}

async function tests(): Promise<void> {
  await mkdir(".berth", { recursive: true });
  await rm(reportFile, { force: true });
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${reportFile}`];
  const code = await run("vitest", ["run", ...reporters, ...vitestArguments]);
  const report: Count = await readFile(reportFile, "utf8").then(readReport, () => ({
    passed: 0,
    failed: 0,
    skipped: 0,
  }));
  // An error outside any test fails vitest without failing a test.
  if (code !== 0 && report.failed === 0) report.failed = 1;
  total.passed += report.passed;
  total.failed += report.failed;
  total.skipped += report.skipped;
}

function readReport(text: string): Count {
  const report = JSON.parse(text) as {
    numPassedTests: number;
    numFailedTests: number;
    numPendingTests: number;
    numTodoTests: number;
  };
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

function run(command: string, args: string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: "inherit" });
    const stop = () => child.kill("SIGTERM");
    // The end of the IPC channel: the process that started this one was killed.
    for (const event of ["SIGTERM", "SIGHUP", "disconnect"]) process.once(event, stop);
    process.channel?.unref();
    child.on("error", reject);
    child.on("close", (code) => resolve(code ?? 1));
  });
}

/** Containers of tests whose process is gone. Those of a suite that runs beside this one have a living owner. */
async function containersOfOurs(): Promise<string[]> {
  const { DOCKER_HOST: host } = process.env;
  const docker = new Docker(host?.startsWith("unix://") ? { socketPath: host.slice("unix://".length) } : {});
  const all = await docker.listContainers({ all: true });
  return all
    .filter(({ Labels }) => {
      const owner = /^test-(\d+)-/.exec(Labels["berth.fleet"] ?? "")?.[1];
      return owner !== undefined && !isAlive(Number(owner));
    })
    .map(({ Names, Id }) => Names[0] ?? Id);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
