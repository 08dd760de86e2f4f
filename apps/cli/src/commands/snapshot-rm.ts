import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { notFound } from "../not-found.ts";
import { tenantName } from "../values.ts";

const options = {} as const;

export const snapshotRm = command({
  name: "snapshot rm",
  summary: "remove a snapshot of a tenant",
  positionals: ["TENANT", "NAME"],
  about: "Its forks stay. A worker of its host removes the files within seconds.",
  examples: [{ line: "berth snapshot rm acme ready", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [given = "", name = ""] = positionals;
  const tenant = tenantName(given);
  if (!(await (await context.door()).snapshots.remove(tenant, name)))
    throw notFound(`snapshot ${name} of ${tenant}`, `berth snapshot ls ${tenant}`);
  await context.terminal.answer({ tenant, name, removed: true }, () => `${name} of ${tenant} is removed`);
  return exitCodes.ok;
}
