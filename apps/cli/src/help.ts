import { type Command, commonOptions, type OptionSpecs } from "./command.ts";
import { loadAll, sections } from "./commands.ts";
import { variables } from "./config.ts";
import { usageLine } from "./parse.ts";

/** All commands, one line each. */
export async function overview(): Promise<string> {
  const summaries = new Map((await loadAll()).map(({ name, summary }) => [name, summary]));
  const width = Math.max(...[...summaries.keys()].map((name) => name.length)) + 2;
  const parts = sections.map(({ title, commands }) => {
    const lines = Object.keys(commands).map((name) => `  ${name.padEnd(width)}${summaries.get(name)}`);
    return `${title}\n${lines.join("\n")}`;
  });
  return [
    "berth runs AI agents' commands in isolated per-tenant sandboxes.",
    "",
    parts.join("\n\n"),
    "",
    "berth COMMAND --help shows examples; berth help all prints every page; berth help environment lists the variables.",
    "It talks to Redis (REDIS_URL), or to a gateway when BERTH_URL is set (with BERTH_KEY).",
    "",
    "  berth dev                              a whole fleet on this machine",
    "  berth exec acme -- python3 -V          a command in the sandbox of the tenant acme",
    "",
  ].join("\n");
}

/** The help of one command. Examples come first, because most people stop reading there. */
export function commandHelp(command: Command): string {
  const { summary, about, examples, options } = command;
  const width = Math.max(...examples.map(({ line }) => line.length)) + 3;
  const shown = examples.map(({ line, note }) =>
    note === "" ? `  ${line}` : `  ${line.padEnd(Math.min(width, 64))}  # ${note}`,
  );
  return [
    usageLine(command),
    `  ${summary}`,
    ...(about === undefined ? [] : ["", about]),
    "",
    "Examples",
    ...shown,
    "",
    "Options",
    ...optionLines({ ...options, ...commonOptions }),
    "",
  ].join("\n");
}

/** Every command's help, one after another. */
export async function reference(): Promise<string> {
  return [...(await loadAll()).map(commandHelp), environmentHelp()].join("\n");
}

export function environmentHelp(): string {
  const width = Math.max(...variables.map(([name]) => name.length)) + 2;
  const lines = variables.map(([name, about]) => `  ${name.padEnd(width)}${about}`);
  return ["Environment", ...lines, "", "Example", "  REDIS_URL=redis://10.0.0.5 berth fleet", ""].join("\n");
}

function optionLines(options: OptionSpecs): string[] {
  const forms = Object.entries(options).map(([name, { short, value, type, multiple, about }]) => {
    const letter = short === undefined ? "    " : `-${short}, `;
    const form = `${letter}--${name}${type === "string" ? ` ${value ?? "VALUE"}` : ""}`;
    return { form, about: multiple ? `${about}; may be given more than once` : about };
  });
  const width = Math.max(...forms.map(({ form }) => form.length)) + 2;
  return forms.map(({ form, about }) => `  ${form.padEnd(width)}${about}`);
}
