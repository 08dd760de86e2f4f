/** The data of a plot. `draw-chart.ts` makes an SVG of it. */
export type Chart = LineChart | DotChart;

interface ChartAbout {
  /** The file's name, without `.svg`. */
  readonly name: string;
  readonly title: string;
  /** The label of the horizontal axis. */
  readonly axis: string;
}

/** Lines over a logarithmic horizontal axis. The first series is Berth's. */
export interface LineChart extends ChartAbout {
  readonly kind: "lines";
  readonly x: Scale;
  readonly y: Scale;
  readonly series: readonly { readonly name: string; readonly points: readonly Point[] }[];
}

/** A row of dots for each series, one dot for each sample, over a horizontal axis from 0 ms on. */
export interface DotChart extends ChartAbout {
  readonly kind: "dots";
  readonly series: readonly { readonly name: string; readonly samplesMs: readonly number[] }[];
}

export interface Scale {
  readonly kind: "linear" | "log";
  readonly ticks: readonly { readonly at: number; readonly text: string }[];
}

export type Point = readonly [x: number, y: number];

const roundMs = [0.1, 1, 10, 100, 1_000, 10_000, 100_000];

/** Cumulative distribution: the share of samples that took at most this long, one curve for each contender. */
export function distributionChart(
  about: Pick<ChartAbout, "name" | "title">,
  samples: ReadonlyMap<string, readonly number[]>,
): LineChart {
  const all = [...samples.values()].flat();
  const [least, most] = [Math.min(...all), Math.max(...all)];
  const text = (ms: number) => (ms < 1_000 ? `${ms} ms` : `${ms / 1_000} s`);
  return {
    ...about,
    kind: "lines",
    axis: "time (logarithmic), and the share of all samples that took no longer",
    x: { kind: "log", ticks: around(roundMs, least, most).map((at) => ({ at, text: text(at) })) },
    y: { kind: "linear", ticks: [0, 25, 50, 75, 100].map((at) => ({ at, text: `${at} %` })) },
    series: [...samples].map(([name, values]) => ({ name, points: cumulative(values) })),
  };
}

function cumulative(values: readonly number[]): Point[] {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted.map((ms, index) => [ms, ((index + 1) / sorted.length) * 100]);
}

/** A logarithmic scale of the powers of ten that hold all values. */
export function powersOfTen(values: readonly number[]): Scale {
  const positive = values.filter((value) => value > 0);
  const from = Math.floor(Math.log10(Math.min(...positive)));
  const to = Math.max(from + 1, Math.ceil(Math.log10(Math.max(...positive))));
  const ticks = Array.from({ length: to - from + 1 }, (_, index) => 10 ** (from + index));
  return { kind: "log", ticks: ticks.map((at) => ({ at, text: at.toLocaleString("en") })) };
}

/** The marks from the last one below the least value to the first one above the most. */
function around(marks: readonly number[], least: number, most: number): readonly number[] {
  const from = marks.findLastIndex((mark) => mark <= least);
  const to = marks.findIndex((mark) => mark >= most);
  return marks.slice(Math.max(0, from), to === -1 ? marks.length : to + 1);
}
