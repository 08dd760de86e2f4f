import { byteSize, type UsageSums } from "@berth/protocol";
import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { table } from "../terminal/table.ts";
import { tenantName, wholeNumber } from "../values.ts";

const options = {
  from: { type: "string", value: "DAY", about: "first day, as 2026-11-01 (the thirtieth before the last)" },
  to: { type: "string", value: "DAY", about: "last day (today)" },
  limit: { type: "string", value: "N", about: "of all tenants: at most this many (100)" },
} as const;

export const usage = command({
  name: "usage",
  summary: "what jobs used, by day or by tenant",
  positionals: ["[TENANT]"],
  about:
    "Days are those of UTC. Memory is the largest resident set of any one process. IN is what was submitted, OUT what commands wrote, what\n" +
    "was read, and artifacts.",
  examples: [
    { line: "berth usage acme", note: "day by day" },
    { line: "berth usage --from 2026-11-01 --to 2026-11-30", note: "by tenant, the most cpu first" },
    { line: "berth usage acme --json | jq .total.cpuSeconds", note: "for a program" },
  ],
  options,
  run,
});

const titles = ["JOBS", "FAILED", "CPU", "WALL", "MEMORY", "IN", "OUT"];

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const range = {
    ...(values.from === undefined ? {} : { from: values.from }),
    ...(values.to === undefined ? {} : { to: values.to }),
  };
  const { tenants: door } = await context.door();
  if (positionals[0] === undefined) {
    const limit = values.limit === undefined ? 100 : wholeNumber("--limit", values.limit);
    const fleet = await door.usedByAll({ ...range, limit });
    const named = fleet.tenants.some(({ name }) => name !== undefined);
    const rows = fleet.tenants.map(({ tenant, name, ...sums }) => [
      tenant,
      ...cells(sums),
      ...(named ? [name ?? "-"] : []),
    ]);
    const header = ["TENANT", ...titles, ...(named ? ["GIVEN NAME"] : [])];
    const more = fleet.truncated ? "\n\nof the thousand tenants that used something last" : "";
    await context.terminal.answer(fleet, () => table(header, rows) + more);
    return exitCodes.ok;
  }
  const report = await door.used(tenantName(positionals[0]), range);
  const days = report.days.map(({ day, ...sums }) => [day, ...cells(sums)]);
  await context.terminal.answer(report, () =>
    table(["DAY", ...titles], [...days, ["total", ...cells(report.total)]]),
  );
  return exitCodes.ok;
}

function cells(sums: UsageSums): (string | number)[] {
  const { jobs, failed, cpuSeconds, wallSeconds, peakMemoryBytes, inBytes, outBytes } = sums;
  const seconds = (value: number) => `${value.toFixed(1)} s`;
  const sizes = [peakMemoryBytes, inBytes, outBytes].map(byteSize);
  return [jobs, failed, seconds(cpuSeconds), seconds(wallSeconds), ...sizes];
}
