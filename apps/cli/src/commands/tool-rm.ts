import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { notFound } from "../not-found.ts";

const options = {} as const;

export const toolRm = command({
  name: "tool rm",
  summary: "remove a custom tool",
  positionals: ["NAME"],
  about: "Jobs that call it are refused from now on; running jobs go on.",
  examples: [{ line: "berth tool rm lint", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [name = ""] = positionals;
  if (!(await (await context.door()).tools.remove(name))) throw notFound(`tool ${name}`, "berth tool ls");
  await context.terminal.answer({ name, removed: true }, () => `${name} is removed`);
  return exitCodes.ok;
}
