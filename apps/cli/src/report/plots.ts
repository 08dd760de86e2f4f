import type { BatchStatistics, TenantCount } from "../batch/batch-statistics.ts";
import { percentileOf } from "../batch/batch-statistics.ts";
import { fineSpan, Plot, round, roundTicks, spanTicks } from "./axis.ts";
import { type Markup, markup } from "./markup.ts";

const steps = 180;
const bins = 36;
const tenantsShown = 20;
const [wide, half] = [1_040, 500];
/** Room above the highest bar for the names of the marks. */
const headroom = 1.3;
const nothing = markup`<p class="none">No job has ended.</p>`;

/** Jobs ended over time, and how many of them failed. */
export function progressPlot({ ends, firstAtMs }: BatchStatistics): Markup {
  if (ends.length === 0) return nothing;
  const plot = new Plot(wide);
  const fromMs = ends.reduce((least, { atMs }) => Math.min(least, atMs), firstAtMs ?? Infinity);
  const spanMs = Math.max(1, ends.reduce((most, { atMs }) => Math.max(most, atMs), 0) - fromMs);
  const all = new Array<number>(steps + 1).fill(0);
  const failed = new Array<number>(steps + 1).fill(0);
  for (const { atMs, ok } of ends) {
    const step = Math.min(steps, Math.ceil(((atMs - fromMs) / spanMs) * steps));
    all[step] = (all[step] ?? 0) + 1;
    if (!ok) failed[step] = (failed[step] ?? 0) + 1;
  }
  const area = (counts: readonly number[], name: string) => {
    let sum = 0;
    const points = counts.map((count, step) => {
      sum += count;
      return `${plot.x(step / steps)},${plot.y(sum / ends.length)}`;
    });
    const closed = [`${plot.x(0)},${plot.y(0)}`, ...points, `${plot.x(1)},${plot.y(0)}`].join(" ");
    return markup`<polygon class="area ${name}" points="${closed}"/><polyline class="line ${name}" points="${points.join(" ")}"/>`;
  };
  const [counts, spans] = [plot.countAxis(ends.length), plot.spanAxis(spanTicks(spanMs))];
  const drawn = plot.drawn("Jobs ended over time", counts, area(all, "ok"), area(failed, "bad"), spans);
  return markup`${drawn}${legend(["ok", "ended"], ["bad", "of them failed"])}`;
}

/** Distribution of run times, on a logarithmic axis. */
export function spanHistogram(values: readonly number[], title: string): Markup {
  if (values.length === 0) return markup`<p class="none">No job began.</p>`;
  // The clock cannot measure less than a tenth of a millisecond.
  const floored = values.map((ms) => Math.max(ms, 0.1));
  const [least, longest] = floored.reduce(
    ([low, high], ms) => [Math.min(low, ms), Math.max(high, ms)],
    [Number.POSITIVE_INFINITY, 0],
  );
  const [fromMs, toMs] = [least / 1.3, longest * 1.3];
  const share = (ms: number) => Math.log(ms / fromMs) / Math.log(toMs / fromMs);
  const counts = new Array<number>(bins).fill(0);
  for (const ms of floored) {
    const bin = Math.min(bins - 1, Math.floor(share(ms) * bins));
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  const most = Math.max(...counts) * headroom;
  const plot = new Plot(half);
  const edge = (bin: number) => fromMs * (toMs / fromMs) ** (bin / bins);
  const bars = counts.map((count, bin) => {
    const [x, y] = [plot.x(bin / bins), plot.y(count / most)];
    const about = `${fineSpan(edge(bin))} to ${fineSpan(edge(bin + 1))}: ${count} jobs`;
    return markup`<rect class="bar" x="${x + 0.5}" y="${y}" width="${round(plot.x(1 / bins) - plot.x(0) - 1)}" height="${round(plot.y(0) - y)}"><title>${about}</title></rect>`;
  });
  const marks = [50, 95].map((percent) => {
    const ms = percentileOf(floored, percent) ?? fromMs;
    const x = plot.x(share(ms));
    const side = share(ms) > 0.7 ? "end" : "";
    const y = percent === 50 ? 24 : 40;
    return markup`<line class="mark" x1="${x}" x2="${x}" y1="${plot.y(1)}" y2="${plot.y(0)}"/><text class="note ${side}" x="${side === "end" ? x - 5 : x + 5}" y="${y}">p${percent} ${fineSpan(ms)}</text>`;
  });
  return plot.drawn(title, plot.countAxis(most), ...bars, plot.spanAxis(roundTicks(fromMs, toMs)), ...marks);
}

/** One bar per tenant, most failures first. */
export function tenantBars(tenants: ReadonlyMap<string, TenantCount>): Markup {
  if (tenants.size === 0) return nothing;
  const rows = [...tenants].map(([tenant, { succeeded, failed, cpuMs }]) => {
    const lost = failed.get("lost") ?? 0;
    const bad = [...failed.values()].reduce((sum, count) => sum + count, 0) - lost;
    return { tenant, succeeded, bad, lost, cpuMs, failed, all: succeeded + bad + lost };
  });
  const shown = rows
    .sort((a, b) => b.bad + b.lost - (a.bad + a.lost) || b.all - a.all)
    .slice(0, tenantsShown);
  const most = Math.max(...shown.map(({ all }) => all));
  const part = (name: string, count: number) =>
    count === 0 ? "" : markup`<i class="${name}" style="width:${round((count / most) * 100)}%"></i>`;
  const body = shown.map(({ tenant, succeeded, bad, lost, cpuMs, failed, all }) => {
    const how = [...failed].map(([name, count]) => `${name}: ${count}`).join(", ");
    return markup`<tr><th>${tenant}</th><td class="wide"><div class="stack" title="${how}">${part("ok", succeeded)}${part("bad", bad)}${part("lost", lost)}</div></td><td class="number">${all}</td><td class="number">${bad + lost}</td><td class="number">${(cpuMs / 1_000).toFixed(1)} s</td></tr>`;
  });
  const rest = tenants.size - shown.length;
  return markup`<table><thead><tr><th>tenant</th><th></th><th class="number">jobs</th><th class="number">failed</th><th class="number">cpu</th></tr></thead><tbody>${body}</tbody></table>${legend(["ok", "succeeded"], ["bad", "failed"], ["lost", "lost"])}${rest > 0 ? markup`<p class="none">and ${rest} tenants with fewer failures</p>` : ""}`;
}

function legend(...entries: readonly (readonly [string, string])[]): Markup {
  return markup`<p class="legend">${entries.map(([name, text]) => markup`<span><i class="${name}"></i>${text}</span>`)}</p>`;
}
