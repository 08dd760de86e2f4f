import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Outcome } from "@berth/protocol";
import { describe, expect, test } from "vitest";
import { BatchStatistics } from "../src/batch/batch-statistics.ts";
import { summaryLines, summaryOf } from "../src/batch/batch-summary.ts";
import type { ResultLine } from "../src/batch/result-line.ts";
import { failedLines } from "../src/batch/selection.ts";

function lineOf(index: number, outcome: Outcome, more: Partial<ResultLine> = {}): ResultLine {
  return {
    ...{ index, line: index + 1, id: `b-${index}`, tenant: `t${index % 2}`, session: "main", outcome },
    timing: {
      wallMs: index,
      cpuMs: 500,
      queuedAtMs: 1_000,
      startedAtMs: 1_000 + 10 * index,
      finishedAtMs: 9_000,
    },
    value: { stdout: "out", stderr: "" },
    ...more,
  };
}

const ok = { kind: "exited", code: 0 } as const;
const lost = { kind: "lost", message: "its worker died" } as const;

describe("summary of a batch", () => {
  const statistics = new BatchStatistics();
  for (let index = 0; index < 96; index++) statistics.add(lineOf(index, ok));
  statistics.add(lineOf(96, { kind: "exited", code: 3 }));
  statistics.add(lineOf(97, { kind: "exited", code: 3 }));
  statistics.add(lineOf(98, lost));
  const neverBegun = { timing: { wallMs: 0, cpuMs: 0, finishedAtMs: 9_000 } };
  statistics.add(lineOf(99, { kind: "cancelled", reason: "by request" }, neverBegun));
  const summary = summaryOf({ id: "b", total: 100, statistics, before: 50, seconds: 10 });

  test("the summary of a batch counts outcomes, exit codes apart, and CPU time by tenant", () => {
    expect(summary).toMatchObject({ finished: 100, succeeded: 96, failed: 4, lost: 1, perSecond: 5 });
    expect(summary.failedBy).toEqual({ "exited 3": 2, lost: 1, cancelled: 1 });
    expect(summary.cpuSeconds).toEqual({ t0: 25, t1: 24.5 });
  });

  test("the summary of a batch takes times of jobs that began only", () => {
    expect(summary.wallMs).toEqual({ p50: 49, p95: 94 });
    expect(summary.waitMs).toEqual({ p50: 490, p95: 940 });
  });

  test("the summary of a batch is a few lines for a person", () => {
    expect(summaryLines(summary)).toEqual([
      "100 of 100 jobs ended in 10 s, 5.0 a second: 96 succeeded, 4 failed",
      "  failed by  exited 3: 2, lost: 1, cancelled: 1",
      "  running    p50 49 ms, p95 94 ms",
      "  waiting    p50 490 ms, p95 940 ms",
      "  cpu        t0 25.0 s, t1 24.5 s",
    ]);
  });

  test("the summary of a batch keeps the slowest jobs, the slowest first, and no more than twenty", () => {
    expect(statistics.slowest.map(({ wallMs }) => wallMs)).toEqual(
      Array.from({ length: 20 }, (_, index) => 98 - index),
    );
  });
});

test("the lines to run again are those whose last result is no success, in the file's order", async () => {
  const here = await mkdtemp(join(tmpdir(), "berth-selection-"));
  try {
    const file = join(here, "results.jsonl");
    const lines = [lineOf(5, lost), lineOf(1, ok), lineOf(2, lost), lineOf(2, ok), lineOf(3, lost)];
    await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const selection = await failedLines(file, { file: "jobs.jsonl", total: 6 });
    expect(selection.total).toBe(2);
    expect([0, 1, 2, 3, 4, 5].map((index) => selection.positionOf(index))).toEqual([
      ...[undefined, undefined, undefined],
      ...[0, undefined, 1],
    ]);
    const other = {
      index: 3,
      line: 4,
      order: {} as never,
      job: { tenant: "x", session: "main", labels: {} },
    };
    expect(() => selection.check(other as never)).toThrow("results of other jobs than jobs.jsonl");
    await expect(failedLines(file, { file: "jobs.jsonl", total: 5 })).rejects.toThrow("other jobs");
  } finally {
    await rm(here, { recursive: true });
  }
});
