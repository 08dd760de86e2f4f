import { type Arguments, command } from "../command.ts";
import { UsageError } from "../complaint.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { tenantName } from "../values.ts";

const options = {
  profile: {
    type: "string",
    multiple: true,
    value: "NAME",
    about: "a profile of the workers' configuration file",
  },
  pool: { type: "string", multiple: true, value: "NAME", about: "a pool of workers" },
} as const;

export const tenantRevoke = command({
  name: "tenant revoke",
  summary: "take profiles and pools from a tenant",
  positionals: ["TENANT"],
  about: "Its jobs that need them end as refused from now on, also those that wait. What runs goes on.",
  examples: [{ line: "berth tenant revoke acme --pool gpu", says: "" }],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const tenant = tenantName(positionals[0] ?? "");
  if (values.profile.length + values.pool.length === 0)
    throw new UsageError("--profile NAME or --pool NAME is needed");
  const list = { profiles: values.profile, pools: values.pool };
  const now = await (await context.door()).tenants.revoke(tenant, list);
  const said = `${tenant} may use profiles ${now.profiles.join(", ")}; pools ${now.pools.join(", ")}`;
  await context.terminal.answer({ tenant, ...now }, () => said);
  return exitCodes.ok;
}
