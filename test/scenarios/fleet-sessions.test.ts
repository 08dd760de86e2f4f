import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";

describe("batch of a thousand jobs in one session", () => {
  test("a batch of a thousand jobs in one session does not hide a job of another session of the same sandbox", {
    timeout: 120_000,
  }, async ({ fleet }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    const gate = acme.exec("until [ -e open ]; do sleep 0.05; done");
    const batch = Array.from({ length: 1_000 }, () => acme.exec("true"));
    await Promise.all(batch.map((job) => job.enqueued()));
    expect((await acme.exec("echo hi", { session: "chat" })).outcome).toEqual({
      kind: "exited",
      code: 0,
    });
    await acme.exec("touch open", { session: "chat" });
    await gate;
    const results = await Promise.all(batch);
    expect(results.every(({ outcome }) => outcome.kind === "exited")).toBe(true);
  });
});
