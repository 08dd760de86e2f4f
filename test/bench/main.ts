/**
 * What `npm run bench` runs after the set-up: every scenario against its baselines on the real engine. It reports and
 * never gates: a missed aim is exit 0, only an error is not.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { isFault } from "@berth/protocol";
import { batch } from "./batch.ts";
import { BenchHost } from "./bench-host.ts";
import { coldStart } from "./cold-start.ts";
import { commandStart } from "./command-start.ts";
import { egress } from "./egress.ts";
import { execLatency } from "./exec-latency.ts";
import { execThroughput } from "./exec-throughput.ts";
import { failover } from "./failover.ts";
import { fairness } from "./fairness.ts";
import { files } from "./files.ts";
import { fork } from "./fork.ts";
import { gatewayOverhead } from "./gateway-overhead.ts";
import { growth } from "./growth.ts";
import { idleCost } from "./idle-cost.ts";
import { jobLatency } from "./job-latency.ts";
import { jobThroughput } from "./job-throughput.ts";
import { loadText, machineFacts } from "./machine.ts";
import { output } from "./output.ts";
import { parallelism } from "./parallelism.ts";
import { parked } from "./parked.ts";
import { drawChart } from "./plots/draw-chart.ts";
import { Progress } from "./progress.ts";
import { queueOverhead } from "./queue-overhead.ts";
import type { Findings, Row, Scenario } from "./scenario.ts";
import { scrub } from "./scrub.ts";
import { short, tableText } from "./table.ts";
import { warm } from "./warm.ts";

const scenarios: readonly Scenario[] = [
  execLatency,
  execThroughput,
  parallelism,
  output,
  scrub,
  egress,
  files,
  coldStart,
  parked,
  fork,
  warm,
  jobLatency,
  commandStart,
  jobThroughput,
  queueOverhead,
  gatewayOverhead,
  batch,
  failover,
  fairness,
  idleCost,
  growth,
];
const names = scenarios.map(({ name }) => name).join(", ");

const help = `npm run bench -- [--json FILE] [--plots DIR] [--only NAME[,NAME]] [--quick]

Measures the sandbox against what the engine offers itself, in turns in one run. A ratio above 1 means that ours is better.

  --json FILE    write [{scenario, metric, unit, ours, baseline, baselineName, ratio}]
  --plots DIR    draw the distributions and curves that the scenarios have as DIR/NAME.svg
  --only NAMES   of ${names}
  --quick        fewer samples

An aim that is missed is reported and is not an error. Ctrl-C finishes the sample, removes everything and reports nothing.`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      json: { type: "string" },
      plots: { type: "string" },
      only: { type: "string" },
      quick: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    console.log(help);
    return 0;
  }
  const chosen = choose(values.only);
  const stop = new AbortController();
  const host = await BenchHost.open();
  onSignals(stop, host);
  try {
    return await measure(host, chosen, { ...values, signal: stop.signal });
  } catch (error) {
    const { reason } = stop.signal;
    if (!(reason instanceof Stopped)) throw error;
    return reason.exitCode;
  } finally {
    await host.close();
  }
}

function choose(only: string | undefined): readonly Scenario[] {
  if (only === undefined) return scenarios;
  return only.split(",").map((wanted) => {
    const found = scenarios.find(({ name }) => name === wanted.trim());
    if (!found) throw new UsageError(`no scenario ${wanted}: there are ${names}`);
    return found;
  });
}

class UsageError extends Error {}

interface MeasureOptions {
  readonly quick: boolean;
  readonly json?: string | undefined;
  readonly plots?: string | undefined;
  readonly signal: AbortSignal;
}

async function measure(
  host: BenchHost,
  chosen: readonly Scenario[],
  { quick, json, plots, signal }: MeasureOptions,
): Promise<number> {
  console.log(`${(await machineFacts(host)).join("\n")}\n`);
  const progress = new Progress(process.stderr);
  const rows: Row[] = [];
  let errors = 0;
  for (const scenario of chosen) {
    progress.begin(scenario.name, scenario.about);
    try {
      const findings = await scenario.run(host, {
        quick,
        signal,
        onRound: (done, total) => progress.step(done, total),
      });
      progress.end("measured");
      rows.push(...findings.rows);
      if (plots !== undefined) await draw(plots, findings, quick);
      console.log(`\n${scenario.name}: ${scenario.about}\n\n${findingsText(findings)}\n`);
    } catch (error) {
      signal.throwIfAborted();
      progress.end("failed");
      console.error(error);
      errors++;
    }
  }
  console.log(
    `A ratio above 1 means that ours is better. Load ${loadText()} at the end.\n${missedText(rows)}`,
  );
  if (errors > 0) console.log(`${errors} of ${chosen.length} scenarios could not be measured.`);
  if (json !== undefined) await writeFile(json, `${JSON.stringify(rows.map(forJson), null, 2)}\n`);
  return errors > 0 ? 1 : 0;
}

async function draw(directory: string, { charts = [] }: Findings, quick: boolean): Promise<void> {
  const cores = `${availableParallelism()} cores, load ${loadText().split(" ")[0]} after the measurement`;
  const footnote = `${cores}, ${new Date().toISOString().slice(0, 10)}${quick ? ", --quick" : ""}`;
  await mkdir(directory, { recursive: true });
  for (const chart of charts)
    await writeFile(join(directory, `${chart.name}.svg`), drawChart(chart, footnote));
}

function findingsText({ rows, notes }: Findings): string {
  return [tableText(rows), "", ...notes.map((note) => `- ${note}`)].join("\n");
}

function missedText(rows: readonly Row[]): string {
  const aimed = rows.filter(({ aim }) => aim !== undefined);
  const missed = aimed.filter(({ aim }) => aim?.met === false);
  const lines = missed.map(
    ({ scenario, metric, ratio, baselineName, aim }) =>
      `- ${scenario}, ${metric} against ${baselineName}: ${short(ratio)}×, aim ${aim?.text}. ${aim?.because}`,
  );
  return [
    `${aimed.length - missed.length} of ${aimed.length} aims met.`,
    ...(missed.length > 0 ? ["Missed:"] : []),
    ...lines,
  ].join("\n");
}

function forJson({ scenario, metric, unit, ours, baseline, baselineName, ratio }: Row) {
  return { scenario, metric, unit, ours, baseline, baselineName, ratio };
}

class Stopped extends Error {
  readonly exitCode: number;

  constructor(signal: string, exitCode: number) {
    super(`stopped by ${signal}`);
    this.exitCode = exitCode;
  }
}

/** The first signal lets the sample under way end, so that nothing is created after the cleaning; a second does not wait. */
function onSignals(stop: AbortController, host: BenchHost): void {
  for (const [signal, code] of Object.entries({ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 })) {
    process.on(signal, () => {
      if (stop.signal.aborted) {
        void host.close().finally(() => process.exit(code));
        return;
      }
      console.error(
        "\nstopping: the sample under way ends, then everything is removed; again to not wait for it",
      );
      stop.abort(new Stopped(signal, code));
    });
  }
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    const usage =
      error instanceof UsageError || (error as NodeJS.ErrnoException).code?.startsWith("ERR_PARSE_ARGS");
    console.error(usage ? `${(error as Error).message}\n\n${help}` : isFault(error) ? error.message : error);
    process.exitCode = usage ? 64 : 1;
  },
);
