import { exitCodeOf, type ToolArguments, type ToolParameter } from "@berth/protocol";
import { type Arguments, command, jobOptions } from "../command.ts";
import { UsageError } from "../complaint.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { notFound } from "../not-found.ts";
import { endOf, placeOf, submitJob } from "../run-job.ts";
import { printEnd, shownOutput } from "../shown-command.ts";
import { tenantName } from "../values.ts";

const options = { ...jobOptions } as const;

export const toolRun = command({
  name: "tool run",
  summary: "run a custom tool in a tenant's sandbox",
  positionals: ["TENANT", "NAME", "[PARAM=VALUE...]"],
  about:
    "Output and exit code are as for `berth exec`. A list has commas between its items; a boolean is true or false. The job runs under\n" +
    "the tool's profile unless --profile names one.",
  examples: [
    { line: "berth tool run acme lint path=src fix=true", note: "docs/tools.md defines such a tool" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [given = "", name = "", ...texts] = positionals;
  const tenant = tenantName(given);
  const { tools } = await context.door();
  const tool = (await tools.usableBy({ tenant, agent: values.agent })).find((one) => one.name === name);
  if (!tool) throw notFound(`tool ${name} for ${tenant}`, `berth tool ls ${tenant}`);
  const args = argumentsOf(texts, tool.parameters);
  const { profile = tool.profile, ...place } = placeOf(values);
  const job = await submitJob(context, {
    ...place,
    ...(profile === undefined ? {} : { profile }),
    ...{ tenant, request: { kind: "tool", name, args } },
  });
  const result = await endOf(context, job, shownOutput(context, job));
  await printEnd(context, job, result, false);
  return exitCodeOf(result.outcome) ?? exitCodes.failed;
}

function argumentsOf(
  texts: readonly string[],
  parameters: Readonly<Record<string, ToolParameter>>,
): ToolArguments {
  const pairs = texts.map((text) => {
    const at = text.indexOf("=");
    const name = text.slice(0, at);
    if (at <= 0) throw new UsageError(`${text} is not PARAM=VALUE`);
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    if (!parameter)
      throw new UsageError(`there is no parameter ${name}`, [
        `its parameters are ${Object.keys(parameters).join(", ")}`,
      ]);
    return [name, readValue(parameter.type, text.slice(at + 1))] as const;
  });
  return Object.fromEntries(pairs);
}

/** Converts the text to the parameter's type. Text that does not parse is sent unchanged, and the worker's error names the problem. */
function readValue(type: ToolParameter["type"], text: string): ToolArguments[string] {
  switch (type) {
    case "boolean":
      return text === "true" ? true : text === "false" ? false : text;
    case "integer":
    case "number":
      return text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text);
    case "strings":
      return text.split(",").filter((one) => one !== "");
    default:
      return text;
  }
}
