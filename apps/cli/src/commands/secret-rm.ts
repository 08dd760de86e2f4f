import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { notFound } from "../not-found.ts";
import { tenantName } from "../values.ts";

const options = {} as const;

export const secretRm = command({
  name: "secret rm",
  summary: "remove a secret of a tenant",
  positionals: ["TENANT", "NAME"],
  about: "Running commands keep it; later ones do not have it.",
  examples: [{ line: "berth secret rm acme OPENAI_KEY", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [given = "", name = ""] = positionals;
  const tenant = tenantName(given);
  if (!(await (await context.door()).secrets.remove(tenant, name)))
    throw notFound(`secret ${name} of ${tenant}`, `berth secret ls ${tenant}`);
  await context.terminal.answer({ tenant, name, removed: true }, () => `${name} of ${tenant} is removed`);
  return exitCodes.ok;
}
