import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";
import { startsOf } from "../support/history.ts";
import { exec, seeded } from "../support/load.ts";
import { LoadRun } from "../support/load-run.ts";

describe("twenty tenants on two workers", () => {
  test("twenty tenants on two workers are each on one worker, and warm the second time", async ({
    fleet,
  }) => {
    const slots = { ...busybox, BERTH_MAX_SANDBOXES: "12" };
    const workers = [await fleet.worker("worker-1", slots), await fleet.worker("worker-2", slots)];
    const run = new LoadRun(fleet.client());
    const round = async (name: string) => {
      const before = performance.now();
      const count = "n=$(cat /tmp/n 2>/dev/null); echo $((n + 1)) | tee /tmp/n";
      const jobs = Array.from({ length: 20 }, (_, index) =>
        run.submit(exec(`tenant-${index}`, `${name}.${index}`, count)),
      );
      const results = await Promise.all(jobs.map(async (job) => (await job).result));
      return {
        outputs: results.map(({ value }) => value.stdout),
        ms: Math.round(performance.now() - before),
      };
    };
    const cold = await round("cold");
    const before = (await fleet.containers()).map(({ id }) => id).sort();
    const warm = await round("warm");
    console.log(`twenty tenants on two workers: cold ${cold.ms} ms, warm ${warm.ms} ms`);
    // The temporary file system dies with its container: a second line means the same one.
    expect(cold.outputs).toEqual(cold.outputs.map(() => "1\n"));
    expect(warm.outputs).toEqual(warm.outputs.map(() => "2\n"));
    expect((await fleet.containers()).map(({ id }) => id).sort()).toEqual(before);
    const jobs = await run.jobs();
    const history = await fleet.history(jobs);
    for (const starts of Map.groupBy(startsOf(history), ({ job }) => job.key).values())
      expect(new Set(starts.map(({ worker, epoch }) => `${worker} ${epoch}`)).size).toBe(1);
    const holders = new Set(startsOf(history).map(({ worker }) => worker));
    expect([...holders].sort()).toEqual(workers.map(({ id }) => id));
    await fleet.provesSound(jobs);
  });
});

describe("session's jobs", () => {
  test("a session's jobs keep their order though they are handed over at once, large ones among small", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const acme = fleet.client().tenant("acme");
    const [large, small] = ["x".repeat(400_000), "small"];
    const jobs = [
      acme.write("a", large),
      acme.exec("wc -c < a"),
      acme.write("a", small),
      acme.exec("cat a"),
      acme.write("b", large),
      acme.exec("cat a b | wc -c"),
    ];
    const results = await Promise.all(jobs);
    const outputs = results.map((result) => ("stdout" in result ? result.stdout.trim() : ""));
    expect([outputs[1], outputs[3], outputs[5]]).toEqual(["400000", "small", "400005"]);
  });

  test("a session's jobs keep their order with given and generated ids, and with any known room in the queue", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const run = new LoadRun(fleet.client());
    const pick = seeded(41);
    await (await run.submit(exec("acme", "first"))).result;
    for (let burst = 0; burst < 4; burst++) {
      for (let index = 0; index < 40; index++) {
        const id = pick(2) === 0 ? { id: `named-${burst}-${index}` } : {};
        void run.submit(exec("acme", `${burst}.${index}`, "true", id));
        if (pick(8) === 0) await setImmediate();
      }
      // What a client knows of the room in a queue is good for a second.
      await sleep(700);
    }
    const results = await run.results();
    expect(results.map(({ outcome }) => outcome)).toEqual(results.map(() => ({ kind: "exited", code: 0 })));
    await fleet.provesSound(await run.jobs());
  });
});
