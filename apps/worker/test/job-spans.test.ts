import { sandboxKey } from "@berth/protocol";
import type { AttemptRecord } from "@berth/tenancy";
import { describe, expect, test } from "vitest";
import { attemptSpan } from "../src/job-spans.ts";

const record: AttemptRecord = {
  key: sandboxKey.parse("acme"),
  jobId: "job-a",
  kind: "exec",
  tenant: "acme",
  attempt: 2,
  epoch: 7,
  outcome: "exited",
  exitCode: 3,
  cold: true,
  queueMs: 1_000,
  startMs: 200,
  runMs: 50,
  publishMs: 5,
  ...{ cpuMs: 1, inBytes: 1, outBytes: 1 },
  publishedAtMs: 1_700_000_001_255,
};
const stages = (of: Partial<AttemptRecord>) =>
  attemptSpan({ ...record, ...of }, "worker-1").inside?.map(({ name, startMs, endMs }) => ({
    name,
    from: startMs - 1_700_000_000_000,
    to: endMs - 1_700_000_000_000,
  }));

describe("the spans of an attempt", () => {
  test("the stages of an attempt follow each other from the queue to the published end", () => {
    expect(stages({})).toEqual([
      { name: "berth.queue", from: 0, to: 1_000 },
      { name: "berth.sandbox.start", from: 1_000, to: 1_200 },
      { name: "berth.run", from: 1_200, to: 1_250 },
      { name: "berth.publish", from: 1_250, to: 1_255 },
    ]);
    expect(attemptSpan(record, "worker-1")).toMatchObject({
      name: "berth.job exec",
      kind: "consumer",
      startMs: 1_700_000_000_000,
      endMs: 1_700_000_001_255,
      attributes: {
        "berth.exit_code": 3,
        "berth.attempt": 2,
        "berth.epoch": 7,
        "berth.worker.id": "worker-1",
      },
    });
  });

  test("a warm sandbox has no start, and what did not begin has no run", () => {
    const names = (of: Partial<AttemptRecord>) => stages(of)?.map(({ name }) => name);
    expect(names({ cold: false })).toEqual(["berth.queue", "berth.run", "berth.publish"]);
    const cancelled = { outcome: "cancelled", cold: false, startMs: 0, runMs: 0 };
    expect(names(cancelled)).toEqual(["berth.queue", "berth.publish"]);
  });

  test("a job that a dead worker had begun is not said to have waited for all that time", () => {
    expect(stages({ outcome: "lost", cold: false, startMs: 0, runMs: 0 })).toEqual([
      { name: "berth.publish", from: 1_250, to: 1_255 },
    ]);
  });

  test.for([
    { outcome: "exited", exitCode: 3, error: undefined },
    { outcome: "timed-out", error: undefined },
    { outcome: "refused", refusal: "not-found", error: undefined },
    { outcome: "refused", refusal: "engine-unreachable", error: "engine-unreachable" },
    { outcome: "lost", error: "lost" },
  ])("$outcome $refusal: error is $error", ({ error, ...ended }) => {
    expect(attemptSpan({ ...record, ...ended }, "worker-1").error).toBe(error);
  });
});
