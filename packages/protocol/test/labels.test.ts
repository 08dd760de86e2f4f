import { describe, expect, test } from "vitest";
import { job, jobResult, labels, withText } from "../src/index.ts";

describe("labels", () => {
  test("labels are names and values of any script, which the job keeps", () => {
    const given = { run: "nightly 7", "ci/commit": "0a1b", "owner.team": "größer" };
    const request = { kind: "stat", path: "" };
    expect(job.parse({ version: 1, id: "a", tenant: "acme", request, labels: given }).labels).toEqual(given);
  });

  test.each([
    ["a name that begins with _", { __x: "1" }],
    ["a name of 64 characters", { ["x".repeat(64)]: "1" }],
    ["a value of 257 characters", { a: "x".repeat(257) }],
    ["a value with a control character", { a: "\u001b[2J" }],
    ["33 of them", Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`l${index}`, ""]))],
    [
      "more than 4,096 bytes",
      Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`l${i}`, "x".repeat(250)])),
    ],
    ["five of the fleet's", Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`berth.l${i}`, ""]))],
  ])("labels are refused: %s", (_, given) => {
    expect(labels.safeParse(given).success).toBe(false);
  });

  test("labels leave room for those that the fleet adds", () => {
    const own = Object.fromEntries(Array.from({ length: 32 }, (_, index) => [`l${index}`, "x"]));
    expect(labels.safeParse({ ...own, "berth.schedule": "nightly" }).success).toBe(true);
  });
});

test("a result keeps labels, times and worker when its text is added", () => {
  const stored = {
    outcome: { kind: "exited", code: 3 } as const,
    value: { stdout: "x", stderr: "", cutBytes: 0 },
    timing: { wallMs: 1, cpuMs: 1, queuedAtMs: 1, startedAtMs: 2, finishedAtMs: 3 },
    labels: { run: "7" },
    worker: "w-1",
    host: "a",
  };
  expect(jobResult.parse(withText(stored))).toEqual({ ...stored, text: "x\n[exit 3]" });
});
