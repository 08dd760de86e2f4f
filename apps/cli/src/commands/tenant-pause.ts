import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { tenantName } from "../values.ts";

const options = {} as const;

export const tenantPause = command({
  name: "tenant pause",
  summary: "let nothing more of a tenant begin",
  positionals: ["TENANT"],
  about: "What runs ends; what is enqueued waits until `berth tenant resume`.",
  examples: [{ line: "berth tenant pause acme", says: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const tenant = tenantName(positionals[0] ?? "");
  await (await context.door()).tenants.pause(tenant);
  await context.terminal.answer({ tenant, paused: true }, () => `${tenant} is paused`);
  return exitCodes.ok;
}
