import type { GrantList } from "@berth/client";
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
  peer: {
    type: "string",
    multiple: true,
    value: "TENANT",
    about: "another tenant: its files are at /team/TENANT, read-only, in the next containers",
  },
} as const;

export const tenantGrant = command({
  name: "tenant grant",
  summary: "let a tenant use more profiles and pools, or read a peer's files",
  positionals: ["TENANT"],
  about: "Every tenant may use `default`. A tenant key must also have been made with the same names.",
  examples: [
    { line: "berth tenant grant acme --profile net --pool gpu", note: "" },
    { line: "berth tenant grant acme --peer globex", note: "docs/teams.md" },
  ],
  options: grantOptions,
  run: (given, context) => changeGrants("grant", given, context),
});

export function grantsText({ profiles, pools, peers }: GrantList): string {
  const read = peers.length === 0 ? "" : `; may read ${peers.join(", ")}`;
  return `profiles ${profiles.join(", ")}; pools ${pools.join(", ")}${read}`;
}

/** Grants or revokes, then prints what the tenant may use now. */
export async function changeGrants(
  change: "grant" | "revoke",
  { values, positionals }: Arguments<typeof grantOptions>,
  context: Context,
): Promise<number> {
  const tenant = tenantName(positionals[0] ?? "");
  if (values.profile.length + values.pool.length + values.peer.length === 0)
    throw new UsageError("--profile NAME, --pool NAME or --peer TENANT is needed");
  const list = { profiles: values.profile, pools: values.pool, peers: values.peer };
  const now = await (await context.door()).tenants[change](tenant, list);
  await context.terminal.answer({ tenant, ...now }, () => `${tenant} may use ${grantsText(now)}`);
  return exitCodes.ok;
}
