import { stringify } from "yaml";
import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { notFound } from "../not-found.ts";

const options = {} as const;

export const toolGet = command({
  name: "tool get",
  summary: "a custom tool's definition",
  positionals: ["NAME"],
  examples: [{ line: "berth tool get lint > lint.yaml", note: "to change it in a file" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [name = ""] = positionals;
  const found = await (await context.door()).tools.get(name);
  if (!found) throw notFound(`tool ${name}`, "berth tool ls");
  const { version, by, definition } = found;
  await context.terminal.answer(
    found,
    () => `# version ${version}, by ${by}\n${stringify(definition).trimEnd()}`,
  );
  return exitCodes.ok;
}
