import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { table } from "../terminal/table.ts";
import { tenantName } from "../values.ts";

const options = {
  agent: { type: "string", value: "NAME", about: "those that this agent of the tenant may use" },
} as const;

export const toolLs = command({
  name: "tool ls",
  summary: "custom tools: all, or those that a tenant may use",
  positionals: ["[TENANT]"],
  examples: [
    { line: "berth tool ls", note: "" },
    { line: "berth tool ls acme --agent reviewer", note: "" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const { tools } = await context.door();
  const [tenant] = positionals;
  const found =
    tenant === undefined
      ? (await tools.list()).map(({ definition, ...rest }) => ({ ...rest, ...definition }))
      : await tools.usableBy({ tenant: tenantName(tenant), agent: values.agent });
  await context.terminal.answer({ tools: found }, () =>
    table(
      ["TOOL", "PARAMETERS", "DESCRIPTION"],
      found.map(({ name, parameters, description }) => [
        name,
        Object.entries(parameters)
          .map(([parameter, { required }]) => (required ? parameter : `[${parameter}]`))
          .join(" "),
        description.split("\n", 1)[0]?.slice(0, 100) ?? "",
      ]),
    ),
  );
  return exitCodes.ok;
}
