import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { ProgressBar } from "../terminal/progress-bar.ts";
import { spanText } from "../terminal/quantities.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { oneOf, wholeNumber } from "../values.ts";

const options = {
  exit: { type: "boolean", about: "leave after the tour instead of staying up" },
  serve: { type: "boolean", about: "stay up after the tour, which is what it does anyway" },
  port: { type: "string", short: "p", value: "PORT", about: "of the gateway; a free one when absent" },
} as const;

export const tour = command({
  name: "tour",
  summary: "a demonstration of a fleet on this machine",
  positionals: ["[WHAT]"],
  about:
    "Redis, two workers and a gateway come up; three tenants get a batch, live output, an artifact and a timeout; then it stays up until\n" +
    "Ctrl-C. WHAT may be `sandbox`: a walk through one sandbox without a fleet. Every step says what it expects; the exit code is 1\n" +
    "when one saw something else.",
  examples: [
    { line: "berth tour", note: "what npm start runs" },
    { line: "berth tour --exit", note: "and leaves, for CI" },
    { line: "berth tour sandbox", note: "limits, quotas and kills, one by one" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const what = oneOf("WHAT", positionals[0] ?? "fleet", ["fleet", "sandbox"] as const);
  const port = values.port === undefined ? 0 : wholeNumber("--port", values.port, 0);
  const failures =
    what === "sandbox" ? await walkSandbox(context) : await walkFleet(context, port, !values.exit);
  if (what === "sandbox") await printVerdict(context.terminal, failures);
  return failures === 0 ? exitCodes.ok : exitCodes.failed;
}

async function walkSandbox({ config, terminal }: Context): Promise<number> {
  const { runSandboxTour } = await import("../tour/sandbox-tour.ts");
  return runSandboxTour(config, textWriter(terminal));
}

async function walkFleet(context: Context, port: number, stay: boolean): Promise<number> {
  const { terminal, config, interrupts } = context;
  const [{ LocalFleet }, { addresses }, { walkFleet: walk }, { Berth }] = await Promise.all([
    import("../local/local-fleet.ts"),
    import("../local/addresses.ts"),
    import("../tour/fleet-tour.ts"),
    import("@berth/client"),
  ]);
  const interrupted = interrupts.signal();
  const parent = resolve(context.directory, ".berth");
  await mkdir(parent, { recursive: true });
  const directory = await mkdtemp(join(parent, "tour-"));
  const fleet = new LocalFleet({
    workers: 2,
    redisUrl: config.redisUrl,
    directory,
    temporary: true,
    fleet: `tour-${process.pid}`,
    workerPrefix: `tour-${process.pid}`,
    port,
    config,
  });
  let berth: InstanceType<typeof Berth> | undefined;
  const say = textWriter(terminal);
  const progress = new ProgressBar(terminal, " ", { amount: (count) => String(Math.round(count)) });
  const draw = (done: number, total: number) => {
    progress.show(done, total);
    if (done === total) progress.end();
  };
  try {
    say("— a fleet: Redis, two workers, a gateway");
    const began = performance.now();
    await interrupts.race(fleet.start());
    say(`  up in ${spanText(performance.now() - began)}`);
    berth = new Berth({ redis: fleet.redisUrl });
    const walking = walk({ berth, gatewayUrl: fleet.gatewayUrl, say, draw });
    const failures = await interrupts.race(walking);
    await printVerdict(terminal, failures);
    if (stay && !interrupted.aborted) {
      say(`${addresses(fleet)}\nIt stays up; Ctrl-C ends it.`);
      await new Promise((end) => interrupted.addEventListener("abort", end, { once: true }));
    }
    return failures;
  } finally {
    await berth?.close();
    await fleet.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

/** With --json, stdout belongs to the program that reads it, so the tour's text goes to stderr. */
function textWriter(terminal: Terminal): (text: string) => void {
  return (text) => void (terminal.json ? process.stderr : process.stdout).write(`${text}\n`);
}

function printVerdict(terminal: Terminal, failures: number): Promise<void> {
  return terminal.answer({ failures }, () =>
    failures === 0 ? "\nAll of it as promised." : `\n${failures} steps did not go as promised.`,
  );
}
