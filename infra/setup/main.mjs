/**
 * The way in from the root package.json: makes a machine ready, then runs what was asked for. Plain JavaScript for
 * Node 18 and newer, without packages, since it runs before any are installed.
 */
import { newContext } from "./context.mjs";
import { launch } from "./launch.mjs";
import { watchNpm } from "./parent.mjs";
import { repoRoot } from "./places.mjs";
import { SetupProblem } from "./problem.mjs";
import { Report } from "./report.mjs";
import { check, setUp, stepsFor } from "./setup.mjs";

/** @type {Record<string, { program: string, argv: string[], testImages: boolean, browser: boolean }>} */
const PROGRAMS = {
  start: { program: "apps/cli/src/main.ts", argv: ["tour"], testImages: false, browser: false },
  build: { program: "infra/pack/build.ts", argv: [], testImages: false, browser: false },
  pack: { program: "infra/pack/main.ts", argv: [], testImages: false, browser: false },
  test: { program: "test/run.ts", argv: [], testImages: true, browser: true },
  bench: { program: "test/bench/main.ts", argv: [], testImages: true, browser: false },
};

const HELP = `Makes this machine ready for Berth. Running it again is safe and quick.

  npm run setup               look, and install or build what is missing
  npm run setup -- --check    only look; lists what is missing, exit 1 if anything is
  npm start                   set up, then a local fleet with its dashboard, shown at work; Ctrl-C ends it
                              (npm start -- --exit leaves after the tour)
  npm run -s berth -- ARGS    the berth command, without a set-up; npm run -s berth -- help lists what it does
  npm run build               set up, then make dist/ of every package and app, and the command that npm run berth uses
  npm run pack                set up, then pack berth, @berth/client and @berth/protocol into dist/ (npm run pack -- --out DIR)
  npm test                    set up, then every test     (npm test -- ARGS passes ARGS on)
  npm run bench               set up, then the benchmarks (npm run bench -- ARGS passes ARGS on)

Kept in .berth/ (ignored by git): a Node and pnpm if the machine's do not fit, logs, stamps.
Given to the machine, as root on Debian or Ubuntu: redis-server, a Docker engine, a C compiler; for tests docker-compose and (on
Debian) a Chromium without a window; and the images berth-sandbox:bookworm, berth-busybox:test and berth-entrypoint:test. Otherwise it lists what to install.

  DOCKER_HOST    the engine to use, if not the one at unix:///var/run/docker.sock
  REDIS_URL      a Redis to use; redis-server is then not installed
  CHROMIUM       a Chromium or Chrome for the test of the board; none is then installed
`;

async function main(argv) {
  const [verb, ...rest] = argv;
  const program = PROGRAMS[verb ?? ""];
  if (verb === "setup" && (rest.includes("--help") || rest.includes("-h"))) {
    process.stdout.write(HELP);
    return 0;
  }
  const unknown = verb === "setup" ? rest.find((word) => word !== "--check") : undefined;
  if ((verb !== "setup" && !program) || unknown) {
    process.stderr.write(`Unknown ${unknown ? "option" : "verb"}: ${unknown ?? verb ?? "(none)"}\n\n${HELP}`);
    return 64;
  }
  const context = newContext(repoRoot);
  const steps = stepsFor(program ?? { testImages: true, browser: true });
  // What the program prints on stdout may be read by another program; set-up's lines must not be in it.
  const report = new Report(program ? process.stderr : process.stdout);
  if (rest.includes("--check") && !program) return (await check(context, steps, report)) ? 0 : 1;
  const stopWatching = watchNpm(() => process.exit(143));
  await setUp(context, steps, report);
  stopWatching();
  return program ? launch(context, program.program, [...program.argv, ...rest]) : 0;
}

for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143 })) {
  process.once(signal, () => {
    // Once a program was launched it decides; before that, exiting gives the locks back.
    if (process.listenerCount(signal) === 0) process.exit(code);
  });
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error) => {
    process.stderr.write(
      `\nset-up stopped: ${error instanceof SetupProblem ? error.toText() : error.stack}\n`,
    );
    process.exitCode = 1;
  },
);
