import { BenchFleet, wentWell } from "./bench-fleet.ts";
import { apiExec } from "./engine-exec.ts";
import { inLanes, interleave, median, timedMs } from "./measure.ts";
import { type Findings, row, type Scenario } from "./scenario.ts";

const name = "job-throughput";
const tenants = 16;
const jobsEach = 25;
const apiBatch = 24;

/** Jobs a second through the whole fleet while sixteen tenants always have waiting jobs. */
export const jobThroughput: Scenario = {
  name,
  about: `sh -c true for ${tenants} tenants through the whole fleet, one worker`,
  async run(host, plan): Promise<Findings> {
    await using fleet = await BenchFleet.open(host);
    await fleet.worker("bench-worker", { BERTH_MAX_SANDBOXES: String(tenants) });
    const berth = fleet.client();
    const names = Array.from({ length: tenants }, (_, index) => `${name}-${index}`);
    await Promise.all(names.map(async (id) => wentWell(await berth.tenant(id).exec("true"))));
    const container = await host.containerOf(`${name}-0`);
    const batch = tenants * jobsEach;
    const all = () =>
      Promise.all(
        Array.from({ length: batch }, async (_, index) => {
          const session = `s${index % 4}`;
          const tenant = berth.tenant(names[index % tenants] ?? name);
          wentWell(await tenant.exec("true", { session }));
        }),
      );
    const samples = await interleave(
      [
        { name: "ours", perRound: 1, sample: async () => batch / ((await timedMs(all)) / 1000) },
        {
          name: "API exec",
          perRound: 1,
          sample: async () => {
            const once = () => apiExec(container, ["sh", "-c", "true"]);
            return apiBatch / ((await timedMs(() => inLanes(apiBatch, 8, once))) / 1000);
          },
        },
      ],
      plan.quick ? 4 : 12,
      plan,
    );
    const ours = samples.get("ours") ?? [];
    const baseline = samples.get("API exec") ?? [];
    const because =
      "client, Redis, worker, engine and sixteen sandboxes share this machine's cores; see job-latency for one job's way";
    return {
      rows: [
        row({
          scenario: name,
          metric: `${tenants} tenants`,
          unit: "/s",
          better: "higher",
          ours: median(ours),
          baseline: median(baseline),
          baselineName: "API exec",
          samples: { ours: ours.length, baseline: baseline.length },
          aim: { ratio: 40, because },
        }),
      ],
      notes: [because, `a sample is a batch: ${batch} jobs of ours, ${apiBatch} commands through the API`],
    };
  },
};
