import { describe, expect, test } from "vitest";
import type { JobProgress } from "../src/events/job-events.ts";
import { stateOf } from "../src/jobs/job-record.ts";
import { resultOf } from "./reading.ts";

describe("state of a job", () => {
  const silent: JobProgress = { state: "not-started" };
  const retried: JobProgress = { state: "not-started", retried: 1 };
  const started: JobProgress = { state: "started" };
  const finished: JobProgress = { state: "finished", result: resultOf("") };
  test.for([
    ["scheduled", "before its first attempt is added", 0, 0, silent],
    ["waiting", "while its first attempt is in the queue", 1, 0, silent],
    ["running", "once an attempt started", 1, 1, started],
    ["retrying", "between two attempts", 1, 1, retried],
    ["waiting", "while its second attempt is in the queue", 2, 1, retried],
    ["running", "once its second attempt started, though the record lags behind", 1, 1, started],
    ["running", "when its events were lost after it began", 1, 1, silent],
    ["finished", "after its end", 1, 1, finished],
  ] as const)("the state of a job is %s %s", ([state, , added, begun, progress]) => {
    expect(stateOf({ added, begun, outcome: undefined }, progress)).toBe(state);
  });

  test("the state of a job is finished when its record has an outcome, though its events are gone", () => {
    expect(stateOf({ added: 1, begun: 1, outcome: "exited" }, silent)).toBe("finished");
  });
});
