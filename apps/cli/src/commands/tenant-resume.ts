import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { tenantName } from "../values.ts";

const options = {} as const;

export const tenantResume = command({
  name: "tenant resume",
  summary: "start a paused tenant's jobs again",
  positionals: ["TENANT"],
  about: "Its queued jobs start within seconds.",
  examples: [{ line: "berth tenant resume acme", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const tenant = tenantName(positionals[0] ?? "");
  await (await context.door()).tenants.resume(tenant);
  await context.terminal.answer({ tenant, paused: false }, () => `${tenant} goes on`);
  return exitCodes.ok;
}
