import { BenchFleet, wentWell } from "./bench-fleet.ts";
import { apiExec } from "./engine-exec.ts";
import { interleave, median, timedMs } from "./measure.ts";
import { type Findings, percentileRow, type Scenario } from "./scenario.ts";
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
    const insideMs: number[] = [];
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
      ],
      plan.quick ? 12 : 40,
      plan,
    );
    const ours = samples.get("ours") ?? [];
    const baseline = samples.get("API exec") ?? [];
    const because = `p50 ${short(median(ours))} ms, of which ${short(median(insideMs))} ms in the sandbox`;
    return {
      rows: [50, 99].map((percent) =>
        percentileRow(percent, {
          ...{ scenario: name, ours, baseline, baselineName: "API exec" },
          ...(percent === 50 ? { aim: { ratio: 15, because } } : {}),
        }),
      ),
      notes: [because],
    };
  },
};
