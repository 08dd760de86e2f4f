import { sandboxKey } from "@berth/protocol";
import { Metrics } from "@berth/service";
import { expect, test } from "vitest";
import { stageMetrics } from "../src/stage-metrics.ts";

const key = sandboxKey.parse("acme");
const attempt = {
  event: "job.finished",
  ...{ key, jobId: "a", kind: "exec", tenant: "acme", attempt: 1, epoch: 1 },
  ...{ outcome: "exited", exitCode: 0, cold: true, publishedAtMs: 0, cpuMs: 0, inBytes: 0, outBytes: 0 },
} as const;

async function observed(...events: Parameters<ReturnType<typeof stageMetrics>>[0][]): Promise<string[]> {
  const metrics = new Metrics();
  const onEvent = stageMetrics(metrics);
  for (const event of events) onEvent(event);
  const text = await metrics.text();
  return [...text.matchAll(/^berth_job_stage_seconds_sum(.*)$/gm)].map(([, sample = ""]) => sample).sort();
}

test("the stages of an attempt are observed in seconds, by whether its sandbox had to be started", async () => {
  const times = { queueMs: 1_500, startMs: 250, runMs: 4_000, publishMs: 2 };
  expect(await observed({ ...attempt, ...times })).toEqual([
    '{stage="publishing",cold="true"} 0.002',
    '{stage="running",cold="true"} 4',
    '{stage="starting",cold="true"} 0.25',
    '{stage="waiting",cold="true"} 1.5',
  ]);
});

test("an attempt that did not begin is observed only in the stages that it reached", async () => {
  const times = { queueMs: 1_500, startMs: 0, runMs: 0, publishMs: 2 };
  const refused = { ...attempt, ...times, outcome: "refused", cold: false } as const;
  expect(await observed(refused)).toEqual([
    '{stage="publishing",cold="false"} 0.002',
    '{stage="waiting",cold="false"} 1.5',
  ]);
  const lost = { ...refused, outcome: "lost" } as const;
  expect(await observed(lost), "a dead worker began it").toEqual(['{stage="publishing",cold="false"} 0.002']);
  expect(await observed({ event: "tenancy.trouble", key, message: "x" })).toEqual([]);
});
