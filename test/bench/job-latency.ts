import { BenchFleet, wentWell } from "./bench-fleet.ts";
import { succeeded } from "./bench-host.ts";
import { apiExec } from "./engine-exec.ts";
import { interleave, median, timedMs } from "./measure.ts";
import { RedisCost } from "./redis-cost.ts";
import { aimedRow, type Findings, percentileRow, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";

const name = "job-latency";

/** From enqueueing a job to its result in the client, one at a time, the sandbox warm. */
export const jobLatency: Scenario = {
  name,
  about: "sh -c true through the whole fleet, one at a time, warm",
  async run(host, plan): Promise<Findings> {
    await using fleet = await BenchFleet.open(host);
    await fleet.worker("bench-worker");
    const tenant = fleet.client().tenant(name);
    wentWell(await tenant.exec("true"));
    const container = await host.containerOf(name);
    await using sandbox = await host.sandbox(`${name}-alone`);
    const redis = fleet.connect("blocking");
    const insideMs: number[] = [];
    const costs: RedisCost[] = [];
    const samples = await interleave(
      [
        {
          name: "ours",
          perRound: 20,
          sample: () => timedMs(async () => insideMs.push(wentWell(await tenant.exec("true")).timing.wallMs)),
        },
        {
          name: "API exec",
          perRound: 5,
          sample: () => timedMs(() => apiExec(container, ["sh", "-c", "true"])),
        },
        {
          name: "our exec",
          perRound: 20,
          sample: () => timedMs(async () => succeeded(await sandbox.exec({ command: "true" }))),
        },
        {
          name: "cost",
          perRound: 5,
          sample: async () => {
            const before = await RedisCost.read(redis);
            wentWell(await tenant.exec("true"));
            costs.push((await RedisCost.read(redis)).since(before));
            return 0;
          },
        },
      ],
      plan.quick ? 12 : 40,
      plan,
    );
    const ours = samples.get("ours") ?? [];
    const baseline = samples.get("API exec") ?? [];
    const because = `p50 ${short(median(ours))} ms, of which ${short(median(insideMs))} ms in the sandbox`;
    const rows = [50, 99].map((percent) =>
      percentileRow(percent, {
        ...{ scenario: name, ours, baseline, baselineName: "API exec" },
        ...(percent === 50 ? { aim: { ratio: 18, because } } : {}),
      }),
    );
    const costOf = (what: "scripts" | "calls" | "scriptUs") => median(costs.map((cost) => cost[what]));
    const about = {
      scenario: name,
      samples: costs.length,
      because: "what a renewal or a heartbeat did meanwhile counts too",
    };
    return {
      rows: [
        ...rows,
        percentileRow(50, {
          ...{ scenario: name, ours, baseline: samples.get("our exec") ?? [], baselineName: "our warm exec" },
          aim: { ratio: 1 / 1.8, text: "≤ 1.8 times as long", because },
        }),
        aimedRow({ ...about, metric: "a warm job", unit: "scripts", ours: costOf("scripts"), atMost: 3 }),
        aimedRow({
          ...about,
          metric: "a warm job",
          unit: "ms of Redis",
          ours: costOf("scriptUs") / 1_000,
          atMost: 0.7,
        }),
      ],
      notes: [because, `a warm job alone is ${short(costOf("calls"))} calls in Redis`],
    };
  },
};
