import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { BatchStatistics } from "../../apps/cli/src/batch/batch-statistics.ts";
import { summaryOf } from "../../apps/cli/src/batch/batch-summary.ts";
import type { ResultLine } from "../../apps/cli/src/batch/result-line.ts";
import { reportPage, writeReportPage } from "../../apps/cli/src/report/report-page.ts";
import { browserNote, browserPath, withBrowser } from "../support/browser.ts";

const hostile = [
  "<script>document.title = 'owned'</script>",
  "<img src=x onerror=\"document.title='owned'\">",
  "</pre></details></style></title><svg onload=\"document.title='owned'\">",
  '"><a href="javascript:document.title=\'owned\'">x</a><base href=http://evil.example/>',
  "<iframe src=http://evil.example/></iframe><link rel=stylesheet href=http://evil.example/x.css>",
  "\u001b]0;owned\u0007\u001b[31mred\u001b[0m\u202e &lt;script&gt; \u0000",
].join("\n");

/** Everything that a job, or a file of results from elsewhere, can put into a line. */
function lineOf(text: string): ResultLine {
  return {
    index: 0,
    line: 1,
    id: text,
    tenant: text,
    session: text,
    labels: { run: text },
    outcome: { kind: "refused", code: text, message: text },
    timing: { wallMs: 1, cpuMs: 1, queuedAtMs: 1, startedAtMs: 2, finishedAtMs: 3 },
    value: { stdout: text, stderr: text },
    text,
  };
}

function statisticsOf(line: ResultLine) {
  const statistics = new BatchStatistics();
  statistics.add(line);
  const summary = summaryOf({ id: line.id, total: 1, statistics, before: 0, seconds: 1 });
  return { statistics, summary };
}

describe("batch's report of a hostile job", () => {
  test("a batch's report of a hostile job has its output as text only, and none of its control characters", () => {
    const { statistics, summary } = statisticsOf(lineOf(hostile));
    const page = reportPage(summary, statistics);
    const names = [...page.matchAll(/<\/?([a-z0-9]+)/gi)].map(([, name = ""]) => name.toLowerCase());
    const own =
      "html head meta title style body h1 h2 p div b span section svg line text polygon polyline rect";
    const more = "table thead tbody tr th td i details summary em pre";
    for (const name of names) expect([...own.split(" "), ...more.split(" ")]).toContain(name);
    expect(page).not.toMatch(/<[^>]*\son[a-z]+=/i);
    expect(page).not.toMatch(/(?!\n)\p{Cc}|\p{Cf}/u);
    expect(page).toContain("&lt;script&gt;document.title");
  });

  test("a batch's report of a hostile job loses no line that begins with a bracket", () => {
    const { statistics, summary } = statisticsOf(
      lineOf("bad\n[exit 4]\n\t[x] done \u001b[1;31mred\u001b[0m\r\n[end"),
    );
    expect(reportPage(summary, statistics)).toContain("<pre>bad\n[exit 4]\n    [x] done red\n[end</pre>");
  });

  test.skipIf(browserPath === undefined)(
    `a batch's report of a hostile job runs no script and asks for nothing when it is opened from disk${browserNote}`,
    async () => {
      const here = await mkdtemp(join(tmpdir(), "berth-report-"));
      const file = join(here, "run.html");
      const { statistics, summary } = statisticsOf(lineOf(hostile));
      await writeReportPage(file, summary, statistics);
      try {
        await withBrowser(async (browser) => {
          const page = await browser.newPage();
          const asked: string[] = [];
          const said: string[] = [];
          page.on("request", (request) => asked.push(request.url()));
          page.on("console", (message) => said.push(message.text()));
          page.on("dialog", (dialog) => said.push(dialog.message()));
          const url = pathToFileURL(file).href;
          await page.goto(url, { waitUntil: "networkidle" });
          expect(await page.title()).toContain("Batch <script>");
          expect(await page.locator("script, iframe, img, a, link, base").count()).toBe(0);
          expect(await page.locator("svg").count()).toBe(3);
          expect(await page.locator("pre").textContent()).toContain("<img src=x onerror=");
          expect(asked).toEqual([url]);
          expect(said).toEqual([]);
        });
      } finally {
        await rm(here, { recursive: true });
      }
    },
  );
});
