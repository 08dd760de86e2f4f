import { BenchFleet, wentWell } from "./bench-fleet.ts";
import { BenchGateway } from "./bench-gateway.ts";
import { boardPoll } from "./board-poll.ts";
import { inLanes, interleave, median, timedMs } from "./measure.ts";
import { type Findings, percentileRow, row, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";

const name = "gateway-overhead";
const callers = 16;
const batch = 320;
const command = "true";

/** The cost of the gateway: the same jobs in the same sandbox, over HTTP and with the client. */
export const gatewayOverhead: Scenario = {
  name,
  about: `POST /v1/jobs?wait= against the client alone, warm; one at a time, then ${callers} callers; then the board's poll`,
  async run(host, plan): Promise<Findings> {
    await using fleet = await BenchFleet.open(host);
    await fleet.worker("bench-worker", { BERTH_PARALLEL: String(callers) });
    await using gateway = await BenchGateway.open(fleet.url);
    const tenant = fleet.client().tenant(name);
    wentWell(await tenant.exec(command));
    const direct = async (session = "main") => wentWell(await tenant.exec(command, { session }));
    const through = (session = "main") => gateway.exec(name, command, session);
    const rate = async (once: (session: string) => Promise<unknown>) =>
      batch /
      ((await timedMs(() => inLanes(batch, callers, (index) => once(`s${index % callers}`)))) / 1_000);
    const samples = await interleave(
      [
        { name: "through", perRound: 20, sample: () => timedMs(() => through()) },
        { name: "direct", perRound: 20, sample: () => timedMs(() => direct()) },
        { name: "through, callers", perRound: 1, sample: () => rate(through) },
        { name: "direct, callers", perRound: 1, sample: () => rate(direct) },
      ],
      plan.quick ? 6 : 30,
      plan,
    );
    const of = (contender: string) => samples.get(contender) ?? [];
    const addedMs = median(of("through")) - median(of("direct"));
    const board = await boardPoll(host, plan, name);
    return {
      rows: [
        ...[50, 95].map((percent) =>
          percentileRow(percent, {
            ...{ scenario: name, ours: of("through"), baseline: of("direct") },
            baselineName: "client alone",
            ...(percent === 50
              ? {
                  aim: { ratio: 0.8, text: "≤ 1.25 times", because: `the gateway adds ${short(addedMs)} ms` },
                }
              : {}),
          }),
        ),
        row({
          scenario: name,
          metric: `${callers} callers`,
          unit: "/s",
          better: "higher",
          ours: median(of("through, callers")),
          baseline: median(of("direct, callers")),
          baselineName: "client alone",
          samples: { ours: of("through, callers").length, baseline: of("direct, callers").length },
        }),
        ...board.rows,
      ],
      notes: [
        `the gateway adds ${short(addedMs)} ms to a job's p50: a request, its checks, a key, an answer, and a third process on this machine's cores`,
        `a sample of ${callers} callers is a batch of ${batch} jobs of as many sessions as callers, in one sandbox`,
        ...board.notes,
      ],
    };
  },
};
