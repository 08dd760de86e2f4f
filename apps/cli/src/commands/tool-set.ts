import { type Arguments, command } from "../command.ts";
import { UsageError } from "../complaint.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { fieldsIn } from "../profile-settings.ts";
import { wholeNumber } from "../values.ts";

const options = {
  file: { type: "string", short: "f", value: "FILE", about: "the definition as YAML or JSON" },
  "if-version": {
    type: "string",
    value: "N",
    about: "refuse if the tool is not at this version; 0: if there is one",
  },
} as const;

export const toolSet = command({
  name: "tool set",
  summary: "define a custom tool, or replace it",
  positionals: ["NAME"],
  about:
    "A named command with parameters, for jobs and for MCP; docs/tools.md has the fields. Refused as a whole, with every reason, when it\n" +
    "is not valid. Jobs that begin from now on use the new definition.",
  examples: [{ line: "berth tool set lint --file lint.yaml", note: "" }],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [name = ""] = positionals;
  const { file, "if-version": version } = values;
  if (file === undefined)
    throw new UsageError("--file FILE is needed", [`berth tool set ${name} --file tool.yaml`]);
  const definition = await fieldsIn(
    context.directory,
    file,
    "it is not a tool's definition; docs/tools.md has an example",
  );
  const ifVersion = version === undefined ? undefined : wholeNumber("--if-version", version, 0);
  const now = await (await context.door()).tools.set(name, definition, ifVersion);
  await context.terminal.answer(now, () => `${name} is at version ${now.version}`);
  return exitCodes.ok;
}
