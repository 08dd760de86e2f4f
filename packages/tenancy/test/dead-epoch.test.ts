import { job as jobSchema, sandboxKey } from "@berth/protocol";
import { expect, test } from "vitest";
import { takeOverDeadEpoch } from "../src/dead-epoch.ts";
import type { EventsPort, FetchedJob, Progress } from "../src/tenancy-ports.ts";

/** What takeover does with each attempt of one job, by the attempt's progress. */
async function takenOver(progress: Record<number, Progress>): Promise<Record<number, string>> {
  const became: Record<number, string> = {};
  const note = (how: string) => async (fetched: FetchedJob) => {
    became[fetched.attempt] = how;
  };
  const left = Object.keys(progress).map((name): FetchedJob => {
    const attempt = Number(name);
    const fetched: FetchedJob = {
      ...{ id: "job", queuedId: `job~${attempt}`, attempt, queuedAtMs: 0, load: async () => ({}) },
      complete: () => note("out of the queue")(fetched),
    };
    return fetched;
  });
  const events: Pick<EventsPort, "progress"> = {
    progress: async (_jobId, attempt) => progress[attempt] ?? { state: "not-started" },
  };
  const job = jobSchema.parse({
    version: 1,
    id: "job",
    tenant: "acme",
    request: { kind: "exec", command: "x" },
  });
  await takeOverDeadEpoch({
    ...{ left, key: sandboxKey.parse("acme"), read: async () => job, onStep: () => {} },
    ports: { events: events as EventsPort, report: () => {} },
    takeBack: async () => false,
    endings: { addMissingDeadLetter: note("addMissingDeadLetter") },
    onAgain: note("again"),
    onLost: note("lost"),
  });
  return became;
}

test("takeover handles each attempt by its own progress: the one before a lost attempt only leaves the queue", async () => {
  expect(await takenOver({ 1: { state: "retried" }, 2: { state: "started" } })).toEqual({
    1: "out of the queue",
    2: "lost",
  });
  expect(await takenOver({ 1: { state: "retried" }, 2: { state: "not-started" } })).toEqual({
    1: "out of the queue",
    2: "again",
  });
});
