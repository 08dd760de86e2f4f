import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";

export const secretReencrypt = command({
  name: "secret reencrypt",
  summary: "seal all stored secrets with the first sealing key",
  positionals: [],
  about:
    "The last step of replacing the sealing key: give every program the new key behind the old one, then put it first, then run this,\n" +
    "then take the old one away. docs/secrets.md has the steps.",
  examples: [{ line: "berth secret reencrypt", note: "" }],
  options: {},
  run: (_given, context) => reencrypt(context),
});

async function reencrypt({ door, terminal }: Context): Promise<number> {
  const done = await (await door()).secrets.reencrypt();
  const { resealed, unchanged, unreadable } = done;
  const lost = unreadable.length === 0 ? "" : `; no key opens ${unreadable.join(", ")}`;
  await terminal.answer({ ...done }, () => `${resealed} sealed anew, ${unchanged} unchanged${lost}`);
  return unreadable.length === 0 ? exitCodes.ok : exitCodes.failed;
}
