import { writeFile } from "node:fs/promises";
import type { BatchStatistics } from "../batch/batch-statistics.ts";
import type { BatchSummary } from "../batch/batch-summary.ts";
import { counted } from "../terminal/quantities.ts";
import { fineSpan } from "./axis.ts";
import { Markup, markup, outputMarkup } from "./markup.ts";
import { progressPlot, spanHistogram, tenantBars } from "./plots.ts";
import { reportStyle } from "./report-style.ts";

/** A self-contained page: opens from disk and loads no script, font or address. */
export async function writeReportPage(
  file: string,
  summary: BatchSummary,
  statistics: BatchStatistics,
): Promise<void> {
  await writeFile(file, reportPage(summary, statistics));
}

/** Shows job output as text. The policy blocks every script in the page. */
export function reportPage(summary: BatchSummary, statistics: BatchStatistics): string {
  const { id, total, finished, seconds, perSecond } = summary;
  const rate = perSecond > 0 ? `, ${perSecond.toFixed(1)} a second` : "";
  const page = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Batch ${id}</title>
<style>${new Markup(reportStyle)}</style>
</head>
<body>
<h1>Batch ${id}</h1>
<p class="lead">${finished} of ${counted(total, "job")} ended; the last run took ${fineSpan(seconds * 1_000)}${rate}. Written ${new Date().toISOString()}.</p>
<div class="tiles">${tiles(summary)}</div>
<section><h2>Progress</h2>${progressPlot(statistics)}</section>
<div class="grid2">
<section><h2>How long jobs ran</h2>${spanHistogram(statistics.wallMs, "How long jobs ran")}</section>
<section><h2>How long jobs waited</h2>${spanHistogram(statistics.waitMs, "How long jobs waited")}</section>
</div>
<section><h2>Outcomes by tenant</h2>${tenantBars(statistics.tenants)}</section>
<section><h2>Failures</h2>${failures(statistics)}</section>
<section><h2>Slowest jobs</h2>${slowest(statistics)}</section>
</body>
</html>
`;
  return page.text;
}

function tiles({ succeeded, failed, lost, wallMs, waitMs, cpuSeconds }: BatchSummary): Markup[] {
  const cpu = Object.values(cpuSeconds).reduce((sum, seconds) => sum + seconds, 0);
  const span = (ms: number | undefined) => (ms === undefined ? "–" : fineSpan(ms));
  const entries: readonly (readonly [string, string, string])[] = [
    ["ok", succeeded.toLocaleString("en"), "succeeded"],
    [
      failed > 0 ? "bad" : "",
      failed.toLocaleString("en"),
      lost > 0 ? `failed, ${lost} of them lost` : "failed",
    ],
    ["", `${span(wallMs.p50)} / ${span(wallMs.p95)}`, "ran, p50 / p95"],
    ["", `${span(waitMs.p50)} / ${span(waitMs.p95)}`, "waited, p50 / p95"],
    ["", `${cpu.toFixed(1)} s`, "of cpu"],
  ];
  return entries.map(
    ([name, value, about]) => markup`<div class="tile ${name}"><b>${value}</b><span>${about}</span></div>`,
  );
}

function failures({ failures, failed, failedBy }: BatchStatistics): Markup {
  if (failed === 0) return markup`<p class="none">None.</p>`;
  const counts = [...failedBy].sort(([, a], [, b]) => b - a).map(([name, count]) => `${name}: ${count}`);
  const first = failures.length < failed ? ` The first ${failures.length} of ${failed}:` : "";
  const each = failures.map(
    ({ id, line, tenant, session, outcome, tail }, index) =>
      markup`<details${new Markup(index === 0 ? " open" : "")}><summary><em>${outcome}</em> ${tenant}/${session} <span>line ${line}, <span class="id">${id}</span></span></summary>${tail === "" ? markup`<p class="none">It wrote nothing.</p>` : markup`<pre>${outputMarkup(tail)}</pre>`}</details>`,
  );
  return markup`<p class="none">${counts.join(", ")}.${first}</p>${each}`;
}

function slowest({ slowest }: BatchStatistics): Markup {
  if (slowest.length === 0) return markup`<p class="none">No job began.</p>`;
  const rows = slowest.map(
    ({ id, line, tenant, session, outcome, wallMs, waitMs }) =>
      markup`<tr><td class="number">${fineSpan(wallMs)}</td><td class="number">${waitMs === undefined ? "" : fineSpan(waitMs)}</td><td>${tenant}/${session}</td><td>${outcome}</td><td class="number">${line}</td><td class="id">${id}</td></tr>`,
  );
  return markup`<table><thead><tr><th class="number">ran</th><th class="number">waited</th><th>tenant/session</th><th>outcome</th><th class="number">line</th><th>job</th></tr></thead><tbody>${rows}</tbody></table>`;
}
