import { type Arguments, command } from "../command.ts";
import { UsageError } from "../complaint.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { readStdin } from "../stdin.ts";
import { tenantName } from "../values.ts";

const options = {} as const;

export const secretSet = command({
  name: "secret set",
  summary: "store a secret of a tenant, read from stdin",
  positionals: ["TENANT", "NAME"],
  about:
    "Every command of the tenant has it in the variable NAME. It is sealed (encrypted) before it is stored, no command prints it, and\n" +
    "it is masked in everything that leaves a sandbox. One line break at its end is left out.",
  examples: [
    { line: "berth secret set acme OPENAI_KEY < key.txt", note: "" },
    { line: "pass show openai | berth secret set acme OPENAI_KEY", note: "" },
  ],
  options,
  run: (given, context) => storeSecret(given, context, { mustExist: false, done: "is stored" }),
});

/** Sets or rotates a secret. The value comes from stdin: every process of this machine could read an argument. */
export async function storeSecret(
  { positionals }: Arguments<typeof options>,
  context: Context,
  { mustExist, done }: { readonly mustExist: boolean; readonly done: string },
): Promise<number> {
  const [tenant = "", name = ""] = positionals;
  const of = tenantName(tenant);
  const { head, rest } = await readStdin(context);
  if (rest) throw new UsageError("a secret has at most 8192 bytes");
  const value = head.toString().replace(/\r?\n$/, "");
  if (value === "")
    throw new UsageError("there is nothing on stdin", [`berth secret set ${of} ${name} < FILE`]);
  await (await context.door()).secrets.set(of, name, value, { mustExist });
  await context.terminal.answer({ tenant: of, name }, () => `${name} of ${of} ${done}`);
  return exitCodes.ok;
}
