import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { notFound } from "../not-found.ts";

const options = {} as const;

export const keyRevoke = command({
  name: "key revoke",
  summary: "revoke a key of the gateway",
  positionals: ["KEY"],
  about: "KEY is its id, as `berth key ls` shows it. Gateways refuse it within two seconds.",
  examples: [{ line: "berth key revoke k3x9a0b1c2d4", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [id = ""] = positionals;
  if (!(await (await context.door()).keys.revoke(id))) throw notFound(`key ${id}`, "berth key ls");
  await context.terminal.answer({ id, revoked: true }, () => `${id} is revoked`);
  return exitCodes.ok;
}
