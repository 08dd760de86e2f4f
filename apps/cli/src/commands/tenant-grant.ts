import { type Arguments, command } from "../command.ts";
import { UsageError } from "../complaint.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { tenantName } from "../values.ts";

export const grantOptions = {
  profile: {
    type: "string",
    multiple: true,
    value: "NAME",
    about: "a profile of the workers' configuration file, or a live one",
  },
  pool: { type: "string", multiple: true, value: "NAME", about: "a pool of workers" },
} as const;

export const tenantGrant = command({
  name: "tenant grant",
  summary: "let a tenant use more profiles and pools",
  positionals: ["TENANT"],
  about: "Every tenant may use `default`. A tenant key must also have been made with the same names.",
  examples: [{ line: "berth tenant grant acme --profile net --pool gpu", says: "" }],
  options: grantOptions,
  run: (given, context) => changeGrants("grant", given, context),
});

/** Grants or revokes what was named, and tells what the tenant may use now. */
export async function changeGrants(
  change: "grant" | "revoke",
  { values, positionals }: Arguments<typeof grantOptions>,
  context: Context,
): Promise<number> {
  const tenant = tenantName(positionals[0] ?? "");
  if (values.profile.length + values.pool.length === 0)
    throw new UsageError("--profile NAME or --pool NAME is needed");
  const list = { profiles: values.profile, pools: values.pool };
  const now = await (await context.door()).tenants[change](tenant, list);
  const said = `${tenant} may use profiles ${now.profiles.join(", ")}; pools ${now.pools.join(", ")}`;
  await context.terminal.answer({ tenant, ...now }, () => said);
  return exitCodes.ok;
}
