import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { tenantName } from "../values.ts";

const options = {} as const;

export const secretLs = command({
  name: "secret ls",
  summary: "names of a tenant's secrets",
  positionals: ["TENANT"],
  about: "Values are never shown.",
  examples: [{ line: "berth secret ls acme", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const tenant = tenantName(positionals[0] ?? "");
  const names = await (await context.door()).secrets.names(tenant);
  await context.terminal.answer({ tenant, names }, () => names.join("\n") || `${tenant} has no secrets`);
  return exitCodes.ok;
}
