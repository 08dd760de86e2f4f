import type { BenchHost } from "./bench-host.ts";
import { percentile } from "./measure.ts";
import type { Chart } from "./plots/chart.ts";

/** One scenario: Berth and its baselines, measured in turns. */
export interface Scenario {
  readonly name: string;
  readonly about: string;
  run(host: BenchHost, plan: Plan): Promise<Findings>;
}

export interface Plan {
  /** Fewer samples; the same ratios with more noise. */
  readonly quick: boolean;
  /** Checked before every sample, so that a running sample ends and is cleaned up. */
  readonly signal: AbortSignal;
  readonly onRound: (done: number, total: number) => void;
}

export interface Findings {
  readonly rows: readonly Row[];
  /** Notes below the rows: where the time goes, what was left out. */
  readonly notes: readonly string[];
  /** The plots of `--plots`. */
  readonly charts?: readonly Chart[];
}

export interface Row {
  readonly scenario: string;
  readonly metric: string;
  readonly unit: string;
  readonly ours: number;
  readonly baseline: number;
  readonly baselineName: string;
  /** Above 1: Berth is better, for times as for rates. */
  readonly ratio: number;
  readonly samples: { readonly ours: number; readonly baseline: number };
  readonly aim?: Aim;
}

export interface Aim {
  readonly text: string;
  readonly met: boolean;
  /** Why the aim was missed, as far as this run shows. */
  readonly because: string;
}

type RowInput = Omit<Row, "ratio" | "aim"> & {
  /** Times and sizes: lower. Rates: higher. */
  readonly better: "lower" | "higher";
  readonly aim?: { readonly ratio: number; readonly text?: string; readonly because: string };
};

/** A row of times in milliseconds at one percentile. */
export function percentileRow(percent: number, { ours, baseline, ...about }: PercentileInput): Row {
  return row({
    ...about,
    metric: `p${percent}`,
    unit: "ms",
    better: "lower",
    ours: percentile(ours, percent),
    baseline: percentile(baseline, percent),
    samples: { ours: ours.length, baseline: baseline.length },
  });
}

interface PercentileInput extends Pick<RowInput, "scenario" | "baselineName" | "aim"> {
  readonly ours: readonly number[];
  readonly baseline: readonly number[];
}

/** A number with an aim and without a baseline. */
export function aimedRow({ atMost, because, samples, ...about }: AimedRow): Row {
  return row({
    ...about,
    better: "lower",
    baseline: atMost,
    baselineName: "the aim",
    samples: { ours: samples, baseline: 1 },
    aim: { ratio: 1, text: `≤ ${atMost} ${about.unit}`, because },
  });
}

interface AimedRow extends Pick<Row, "scenario" | "metric" | "unit" | "ours"> {
  readonly atMost: number;
  readonly because: string;
  readonly samples: number;
}

export function row({ better, aim, ...measured }: RowInput): Row {
  const { ours, baseline } = measured;
  const ratio = better === "lower" ? baseline / ours : ours / baseline;
  if (aim === undefined) return { ...measured, ratio };
  const text = aim.text ?? (aim.ratio === 1 ? "faster" : `≥ ${aim.ratio}×`);
  return { ...measured, ratio, aim: { text, met: ratio >= aim.ratio, because: aim.because } };
}
