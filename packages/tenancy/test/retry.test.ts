import { type Job, job as jobSchema, type Outcome } from "@berth/protocol";
import { describe, expect, test } from "vitest";
import { deadReasonOf, retryAtMs } from "../src/retry.ts";

const base = { version: 1, id: "job-a", tenant: "acme", request: { kind: "exec", command: "false" } };
const job = (more: object = {}): Job => jobSchema.parse({ ...base, retry: { attempts: 3 }, ...more });
const exited: Outcome = { kind: "exited", code: 1 };
const refused = (code: string): Outcome => ({ kind: "refused", code, message: "no" });
const everything = { attempts: 3, on: ["done", "exited", "cancelled", "refused", "lost"] };

describe("job that ended badly", () => {
  test("a job that ended badly runs again after a pause that grows, while attempts are left", () => {
    const dues = [1, 2, 3].map((attempt) => retryAtMs(job({ attempt }), exited, 10_000, () => 0));
    expect(dues).toEqual([11_000, 12_000, undefined]);
  });

  test.each<[string, Job, Outcome]>([
    ["it asked for no retry", jobSchema.parse(base), exited],
    ["it ended well", job({ retry: everything }), { kind: "exited", code: 0 }],
    ["it is done", job({ retry: everything }), { kind: "done" }],
    ["it was cancelled", job({ retry: everything }), { kind: "cancelled", reason: "by request" }],
    ["it can never be read", job({ retry: everything }), refused("invalid-job")],
    ["it asked for more than it may have", job({ retry: everything }), refused("not-allowed")],
    ["its deadline has passed", job({ retry: everything }), refused("deadline")],
    ["it ended in a way it did not name", job(), refused("engine-timeout")],
    ["its deadline would pass meanwhile", job({ deadlineAtMs: 10_400 }), exited],
  ])("a job that ended badly does not run again when %s", (_, of, outcome) => {
    expect(retryAtMs(of, outcome, 10_000)).toBeUndefined();
  });
});

describe("a job that ended for good", () => {
  test.each<[string, Job | undefined, Outcome, string | undefined]>([
    ["its attempts ran out", job({ attempt: 3 }), exited, "retries-exhausted"],
    ["it could not be read", undefined, refused("invalid-job"), "unreadable"],
    ["Berth's own machinery refused it", jobSchema.parse(base), refused("image-missing"), "fault"],
    ["its sandbox was switched off", jobSchema.parse(base), refused("sandbox-disabled"), undefined],
    ["it was lost", jobSchema.parse(base), { kind: "lost", message: "gone" }, "lost"],
    ["its command failed and no retry was asked for", jobSchema.parse(base), exited, undefined],
    ["it ended well at last", job({ attempt: 3 }), { kind: "exited", code: 0 }, undefined],
    ["its request was refused", jobSchema.parse(base), refused("not-found"), undefined],
    ["it was cancelled", job({ attempt: 3 }), { kind: "cancelled", reason: "by request" }, undefined],
  ])("a job that ended for good becomes a dead letter or not: %s", (_, of, outcome, reason) => {
    expect(deadReasonOf(of, outcome)).toBe(reason);
  });
});
