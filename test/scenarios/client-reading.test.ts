import { describe, expect } from "vitest";
import { test } from "../support/fleet.ts";
import { Orchestrator } from "../support/orchestrator.ts";

describe("what a client costs", () => {
  test("a thousand jobs in flight, forty followers and a group of results are three connections", async ({
    fleet,
    topology,
    skip,
  }) => {
    skip(topology === "cluster", "it counts the connections of one server");
    const redis = fleet.redis.connect();
    const connections = async () =>
      String(await redis.client("LIST"))
        .trim()
        .split("\n").length;
    const before = await connections();
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    const jobs = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) =>
        acme.exec("true", index % 2 === 0 ? {} : { id: `given-${index}` }).enqueued(),
      ),
    );
    const followed = jobs.slice(0, 40).map(async (job) => {
      const types: string[] = [];
      for await (const { type } of job.events()) types.push(type);
      return types;
    });
    const group = berth.results("watchers", { consumer: "one" });
    const seen = new Set<string>();
    const reading = (async () => {
      for await (const { jobId, ack } of group) {
        seen.add(jobId);
        await ack();
      }
    })();
    await expect.poll(connections).toBe(before + 3);
    await fleet.worker("worker-1");
    const results = await Promise.all(jobs.map(({ result }) => result));
    expect(results.every(({ outcome }) => outcome.kind === "exited" && outcome.code === 0)).toBe(true);
    for (const types of await Promise.all(followed)) expect(types).toEqual(["started", "finished"]);
    await expect.poll(() => seen.size).toBe(1_000);
    await berth.close();
    await reading;
  }, 300_000);
});

describe("following a job of a real fleet", () => {
  const counting = "i=0; while [ $i -lt 40 ]; do i=$((i + 1)); echo $i; sleep 0.1; done";
  const counted = Array.from({ length: 40 }, (_, index) => `${index + 1}\n`).join("");

  test("following a job of a real fleet survives that every connection is killed again and again, and a Redis that starts again", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", { BERTH_LEASE_MS: "10000" });
    const job = await fleet.client().tenant("acme").exec(counting).enqueued();
    let output = "";
    let trouble = 0;
    for await (const event of job.events()) {
      if (event.type !== "stdout") continue;
      output += event.bytes.toString();
      const lines = output.split("\n").length;
      if (trouble < 2 && lines > 5 * (trouble + 1)) {
        trouble++;
        await fleet.redis.connect().call("CLIENT", "KILL", "TYPE", "normal");
      } else if (trouble === 2 && lines > 20) {
        trouble++;
        await fleet.redis.kill();
        await fleet.redis.start();
      }
    }
    expect(trouble).toBe(3);
    expect(output).toBe(counted);
    expect((await job.result).value.stdout).toBe(counted);
  });

  test("another process follows a job from the middle, by an event's id", async ({ fleet }) => {
    await fleet.worker("worker-1");
    const job = await fleet.client().tenant("acme").exec(counting).enqueued();
    let [output, last] = ["", ""];
    for await (const event of job.events()) {
      if (event.type === "stdout") output += event.bytes.toString();
      last = event.id;
      if (output.length > 20) break;
    }
    const elsewhere = await fleet.client().job(job.id);
    for await (const event of elsewhere?.events(last) ?? []) {
      if (event.type === "stdout") output += event.bytes.toString();
    }
    expect(output).toBe(counted);
    expect(await elsewhere?.result).toEqual(await job.result);
  });
});

describe("a group of results of a real fleet", () => {
  test("two consumers share every job's end, and what one dies with comes to the other", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1");
    const berth = fleet.client();
    const doomed = fleet.client();
    const jobs = await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        berth
          .tenant(`t${index % 3}`)
          .exec(`echo ${index}`)
          .enqueued(),
      ),
    );
    const taken: string[] = [];
    for await (const { jobId, ack } of doomed.results("billing", { consumer: "doomed", batch: 5 })) {
      if (taken.length === 4) break;
      taken.push(jobId);
      await ack();
    }
    await doomed.close();
    const group = berth.results("billing", { consumer: "heir", claimIdleMs: 1_000 });
    for await (const { jobId, tenant, result, ack } of group) {
      const index = jobs.findIndex(({ id }) => id === jobId);
      expect({ tenant, stdout: result.value.stdout }).toEqual({
        tenant: `t${index % 3}`,
        stdout: `${index}\n`,
      });
      taken.push(jobId);
      await ack();
      if (taken.length === jobs.length) break;
    }
    expect([...taken].sort()).toEqual(jobs.map(({ id }) => id).sort());
    expect(group.lagLost).toBe(0);
  });
});

describe("orchestrator in plain JavaScript", () => {
  test("an orchestrator in plain JavaScript imports the client as it is and uses all of it", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1");
    const orchestrator = new Orchestrator(fleet.redis.url, "tour");
    expect(await orchestrator.ended()).toBe("0");
    expect(orchestrator.lines).toEqual([
      { stdout: "42\n" },
      { types: ["started", "stdout", "finished"] },
      { invalid: true },
      { acknowledged: "string" },
    ]);
  });
});
