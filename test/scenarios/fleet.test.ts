import { describe, expect } from "vitest";
import { test } from "../support/fleet.ts";

describe("fleet", () => {
  test("a fleet runs a client's jobs in order, without the client waiting in between", async ({ fleet }) => {
    await fleet.worker("worker-1");
    const acme = fleet.client().tenant("acme");
    const written = acme.write("main.py", "print(6 * 7)");
    const run = acme.exec("python3 main.py");
    expect(await written).toMatchObject({ outcome: { kind: "done" } });
    expect(await run).toMatchObject({ outcome: { kind: "exited", code: 0 }, stdout: "42\n" });
  });

  test("a fleet keeps each tenant on one worker, warm the second time", async ({ fleet }) => {
    const workers = [await fleet.worker("worker-1"), await fleet.worker("worker-2")];
    const berth = fleet.client();
    const tenants = Array.from({ length: 6 }, (_, index) => berth.tenant(`tenant-${index}`));
    const mark = () =>
      Promise.all(
        tenants.map((tenant) =>
          tenant.exec("n=$(cat /tmp/n 2>/dev/null); echo $((n + 1)) > /tmp/n; cat /tmp/n"),
        ),
      );
    const first = await mark();
    const before = (await fleet.containers()).map(({ id }) => id).sort();
    const second = await mark();
    expect(workers.map(({ log }) => log).join("")).not.toContain("tenancy.fenced");
    expect(first.map(({ stdout }) => stdout)).toEqual(first.map(() => "1\n"));
    expect(second.map(({ stdout }) => stdout)).toEqual(second.map(() => "2\n"));
    expect((await fleet.containers()).map(({ id }) => id).sort()).toEqual(before);
    expect(before).toHaveLength(6);
  });

  test("a fleet streams a job's output while it runs, resumable from any event", async ({ fleet }) => {
    await fleet.worker("worker-1");
    const job = fleet.client().tenant("acme").exec("for i in 1 2 3; do echo $i; sleep 0.2; done");
    const seen: { id: string; type: string; text: string }[] = [];
    for await (const event of job.events()) {
      seen.push({ id: event.id, type: event.type, text: "bytes" in event ? event.bytes.toString() : "" });
    }
    expect(seen.map(({ type }) => type)).toEqual(["started", "stdout", "stdout", "stdout", "finished"]);
    const rest: string[] = [];
    for await (const event of job.events(seen[2]?.id))
      rest.push("bytes" in event ? event.bytes.toString() : event.type);
    expect(rest).toEqual(["3\n", "finished"]);
  });

  test("a fleet cancels a running and a waiting job", async ({ fleet }) => {
    await fleet.worker("worker-1");
    const acme = fleet.client().tenant("acme");
    const running = await acme.exec("echo up; sleep 60").enqueued();
    const waiting = await acme.exec("echo never").enqueued();
    for await (const event of running.events()) if (event.type === "stdout") break;
    await waiting.cancel();
    await running.cancel();
    expect((await running.result).outcome).toMatchObject({ kind: "cancelled" });
    expect((await waiting.result).outcome).toMatchObject({ kind: "cancelled" });
  });

  test("a fleet runs the same job id once", async ({ fleet }) => {
    await fleet.worker("worker-1");
    const [one, two] = [fleet.client().tenant("acme"), fleet.client().tenant("acme")];
    const order = "echo ran >> ledger; cat ledger";
    const results = await Promise.all([one.exec(order, { id: "job-a" }), two.exec(order, { id: "job-a" })]);
    results.push(await two.exec(order, { id: "job-a" }));
    expect(results.map(({ stdout }) => stdout)).toEqual(["ran\n", "ran\n", "ran\n"]);
  });

  test("a fleet refuses an invalid job at the client, naming every problem", async ({ fleet }) => {
    const acme = fleet.client().tenant("acme");
    await expect(acme.exec("x\0y", { cwd: "/etc" })).rejects.toThrow(/invalid job/);
  });

  test("a fleet gives every tenant a turn when there are more of them than slots", async ({ fleet }) => {
    await fleet.worker("worker-1", { BERTH_MAX_SANDBOXES: "2", BERTH_QUANTUM_MS: "500" });
    const berth = fleet.client();
    const runs = Array.from({ length: 8 }, (_, index) => berth.tenant(`t${index}`).exec("echo $HOME"));
    const results = await Promise.all(runs);
    expect(results.map(({ outcome }) => outcome)).toEqual(results.map(() => ({ kind: "exited", code: 0 })));
    expect((await fleet.containers()).length).toBeLessThanOrEqual(2);
  });

  test("a fleet brings back a batch's results, and the same batch again without running it again", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1");
    const berth = fleet.client();
    const orders = Array.from({ length: 30 }, (_, index) => ({
      tenant: `tenant-${index % 3}`,
      request: { kind: "exec" as const, command: `echo ${index} | tee -a ledger` },
    }));
    const run = async () => {
      const batch = berth.batch(orders, { id: "nightly", inFlight: 10 });
      const outputs: string[] = [];
      for await (const { index, result } of batch.results()) outputs[index] = result.value.stdout ?? "";
      return { outputs, progress: batch.progress() };
    };
    const first = await run();
    expect(first.outputs).toEqual(orders.map((_, index) => `${index}\n`));
    expect(first.progress).toMatchObject({ total: 30, submitted: 30, finished: 30, failed: 0 });
    expect((await run()).outputs).toEqual(first.outputs);
    const value = await berth.tenant("tenant-0").exec("wc -l < ledger");
    expect(value.stdout?.trim()).toBe("10");
  });
});
