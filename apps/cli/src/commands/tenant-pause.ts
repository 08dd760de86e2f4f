import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { tenantName } from "../values.ts";

const options = {} as const;

export const tenantPause = command({
  name: "tenant pause",
  summary: "start no more jobs of a tenant",
  positionals: ["TENANT"],
  about: "Running jobs go on to their end; queued jobs wait until `berth tenant resume`.",
  examples: [{ line: "berth tenant pause acme", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const tenant = tenantName(positionals[0] ?? "");
  await (await context.door()).tenants.pause(tenant);
  await context.terminal.answer({ tenant, paused: true }, () => `${tenant} is paused`);
  return exitCodes.ok;
}
