import { Plot, round, spanTicks } from "../../../apps/cli/src/report/axis.ts";
import { type Markup, markup } from "../../../apps/cli/src/report/markup.ts";
import type { Chart, DotChart, LineChart, Scale } from "./chart.ts";

const [width, left] = [760, 52];
/** Room above the plot for the title and the legend, and below it for two lines. */
const margins = { top: 68, bottom: 62 };
const dotRowHeight = 46;

/** Colours for a light and a dark page. The SVG file is used alone, so it has to bring them. */
const style = markup`<style>
  svg { --card: #fff; --text: #1c2430; --soft: #5d6878; --line: #dfe3e9; --s0: #2563b8; --s1: #c8432f; --s2: #b07a12; --s3: #7b8794; }
  @media (prefers-color-scheme: dark) { svg { --card: #1a2029; --text: #e4e8ee; --soft: #97a3b4; --line: #2c3542;
    --s0: #6aa6f0; --s1: #ef6f5b; --s2: #dfa63a; --s3: #97a3b4; } }
  text { font: 12px system-ui, sans-serif; fill: var(--soft); }
  text.title { font-size: 15px; font-weight: 600; fill: var(--text); }
  .name { fill: var(--text); } .mid { text-anchor: middle; } .end { text-anchor: end; }
  .card { fill: var(--card); } .grid { stroke: var(--line); } .axis { stroke: var(--soft); }
  .curve { fill: none; stroke-width: 2; stroke-linejoin: round; } .ours { stroke-width: 3; }
  .s0 { --c: var(--s0); } .s1 { --c: var(--s1); } .s2 { --c: var(--s2); } .s3 { --c: var(--s3); }
  .curve { stroke: var(--c); } .dot, .key { fill: var(--c); } .dot { fill-opacity: .75; }
</style>`;

/** An SVG file. `footnote` has where and how it was measured. */
export function drawChart(chart: Chart, footnote: string): string {
  const height =
    chart.kind === "lines" ? 360 : margins.top + margins.bottom + dotRowHeight * chart.series.length;
  const plot = new Plot(width, { ...margins, height });
  const content = chart.kind === "lines" ? lines(plot, chart) : dots(plot, chart);
  const under = [chart.axis, footnote].map(
    (text, index) =>
      markup`<text class="mid" x="${plot.x(0.5)}" y="${height - 24 + index * 16}">${text}</text>`,
  );
  const title = markup`<text class="title" x="${left}" y="26">${chart.title}</text>`;
  const card = markup`<rect class="card" width="${width}" height="${height}" rx="8"/>`;
  return `${plot.drawn(chart.title, style, card, title, content, ...under).text}\n`;
}

function lines(plot: Plot, { x, y, series }: LineChart): Markup {
  const across = y.ticks.map(({ at, text }) => ({ share: shareOf(y, at), text }));
  const along = x.ticks.map(({ at, text }) => ({ share: shareOf(x, at), text }));
  // Berth's series is drawn last, on top of the others.
  const curves = series.map(({ points }, index) => {
    const corners = points.map(([px, py]) => `${plot.x(shareOf(x, px))},${plot.y(shareOf(y, py))}`);
    return markup`<polyline class="curve s${index}${index === 0 ? " ours" : ""}" points="${corners.join(" ")}"/>`;
  });
  return markup`${plot.valueAxis(across)}${plot.spanAxis(along)}${curves.toReversed()}${legend(series)}`;
}

function dots(plot: Plot, { series }: DotChart): Markup {
  const mostMs = Math.max(...series.flatMap(({ samplesMs }) => samplesMs)) * 1.05;
  const rows = series.map(({ samplesMs }, index) => {
    const y = plot.y(1 - (index + 0.5) / series.length);
    const marks = samplesMs.map(
      (ms) => markup`<circle class="dot s${index}" cx="${plot.x(ms / mostMs)}" cy="${y}" r="6"/>`,
    );
    return markup`<line class="grid" x1="${plot.x(0)}" x2="${plot.x(1)}" y1="${y}" y2="${y}"/>${marks}`;
  });
  return markup`${rows}${plot.spanAxis(spanTicks(mostMs))}${legend(series)}`;
}

function legend(series: readonly { readonly name: string }[]): Markup {
  let x = left;
  return markup`${series.map(({ name }, index) => {
    const at = x;
    x = round(x + 34 + name.length * 6.6);
    return markup`<rect class="key s${index}" x="${at}" y="40" width="12" height="12" rx="3"/><text class="name" x="${at + 18}" y="50">${name}</text>`;
  })}`;
}

function shareOf({ kind, ticks }: Scale, value: number): number {
  const [from, to] = [ticks[0]?.at ?? 0, ticks.at(-1)?.at ?? 1];
  if (kind === "linear") return (value - from) / (to - from);
  return Math.log(Math.max(value, from) / from) / Math.log(to / from);
}
