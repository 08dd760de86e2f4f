import { byteSize } from "@berth/protocol";
import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { ceilingTable, sandboxTable } from "../fleet-tables.ts";
import { counted } from "../terminal/quantities.ts";
import { tenantName } from "../values.ts";
import { grantsText } from "./tenant-grant.ts";

const options = {} as const;

export const tenantUsage = command({
  name: "tenant usage",
  summary: "what a tenant has now; `berth usage` shows what its jobs used",
  positionals: ["TENANT"],
  examples: [
    { line: "berth tenant usage acme", note: "" },
    { line: "berth tenant usage acme --json | jq .artifactBytes", note: "for a program" },
  ],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const usage = await (await context.door()).tenants.holdings(tenantName(positionals[0] ?? ""));
  const { tenant, paused, unfinished, artifacts, artifactBytes, sandboxes, ceilings } = usage;
  const line = `${tenant}${paused ? " (paused)" : ""}: ${counted(unfinished, "job")} unfinished, ${counted(artifacts, "artifact")} of ${byteSize(artifactBytes)}`;
  const granted = grantsText(usage);
  await context.terminal.answer(usage, () =>
    [
      line,
      granted,
      "",
      ceilingTable(ceilings, context.terminal),
      "",
      sandboxTable(sandboxes, context.terminal),
    ].join("\n"),
  );
  return exitCodes.ok;
}
