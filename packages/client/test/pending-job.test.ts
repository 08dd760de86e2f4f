import { Fault, isFault, type JobResult, type ResultOf, sandboxKey } from "@berth/protocol";
import { describe, expect, expectTypeOf, test } from "vitest";
import { type EnqueuedJob, PendingJob } from "../src/pending-job.ts";

const timing = { wallMs: 1, cpuMs: 1 };
const ended: JobResult = {
  outcome: { kind: "exited", code: 0 },
  value: { stdout: "hi" },
  timing,
  text: "hi",
};
const result = { outcome: ended.outcome, stdout: "hi", stderr: "", cutBytes: 0, timing, text: "hi" };

function ending(how: Promise<JobResult>): PendingJob<"exec"> {
  how.catch(() => {});
  const job: EnqueuedJob = {
    id: "job",
    key: sandboxKey.parse("acme"),
    result: how,
    status: async () => "finished",
    cancel: async () => {},
    async *events() {},
  };
  return new PendingJob(Promise.resolve(job), "exec");
}

const well = () => ending(Promise.resolve(ended));
const badly = () => ending(Promise.reject(new Fault("aborted", { operation: "waiting" })));
const codeOf = (error: unknown) => isFault(error) && error.code;
const refused = () => new PendingJob(Promise.reject(new Fault("fleet-full", { waiting: 1, limit: 1 })));

describe("a pending job is used as a promise is", () => {
  test("catch of a pending job passes its result on, and gets what await would throw", async () => {
    expect(await well().catch(() => "caught")).toEqual(result);
    expect(await badly().catch(codeOf)).toBe("aborted");
    expect(await refused().catch(codeOf)).toBe("fleet-full");
    await expect(refused().catch()).rejects.toMatchObject({ code: "fleet-full" });
    await expect(refused().catch(() => Promise.reject(new Error("worse")))).rejects.toThrow("worse");
  });

  test("finally of a pending job runs once for any end, and changes neither result nor error", async () => {
    const called: string[] = [];
    expect(await well().finally(() => void called.push("well"))).toEqual(result);
    await expect(badly().finally(() => void called.push("badly"))).rejects.toMatchObject({ code: "aborted" });
    await expect(refused().finally(() => void called.push("refused"))).rejects.toMatchObject({
      code: "fleet-full",
    });
    expect(called).toEqual(["well", "badly", "refused"]);
    const broken = () => {
      throw new Error("in finally");
    };
    await expect(well().finally(broken)).rejects.toThrow("in finally");
    expect(await well().finally()).toEqual(result);
  });

  test("a pending job works in Promise.all and async functions, and its chains are promises", async () => {
    const job: Promise<ResultOf<"exec">> = well();
    expect(await Promise.all([job, well()])).toEqual([result, result]);
    expect(await Promise.race([job])).toEqual(result);
    expect((await Promise.allSettled([badly()]))[0]?.status).toBe("rejected");
    expect(job.catch(() => {})).toBeInstanceOf(Promise);
    expect(String(job)).toBe("[object PendingJob]");
    expectTypeOf(well().catch(() => 1)).toEqualTypeOf<Promise<ResultOf<"exec"> | number>>();
    expectTypeOf(well().finally(() => {})).toEqualTypeOf<Promise<ResultOf<"exec">>>();
    expectTypeOf((await well()).stdout).toEqualTypeOf<string>();
  });

  test("a job that is never awaited ends no process, even when it fails", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    refused();
    badly();
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });
});
