import { parseArgs } from "node:util";
import { nearest } from "@berth/protocol";
import { type Arguments, type Command, commonOptions, type OptionSpecs } from "./command.ts";
import { UsageError } from "./complaint.ts";

type OptionToken = {
  readonly name: string;
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
};

/** Parses the arguments of one command. Any mismatch is a UsageError with the correct usage. */
export function parse(command: Command, argv: readonly string[]): Arguments<OptionSpecs> {
  const specs: OptionSpecs = { ...command.options, ...commonOptions };
  const { own, words } = split(command, specs, argv);
  const values = emptyValues(specs);
  const positionals: string[] = [];
  for (const token of tokensOf(specs, own)) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind === "option") take(values, command, specs, token as OptionToken);
  }
  // For a command that passes nothing on, `--` only ends the options.
  if (command.words === undefined) positionals.push(...(words ?? []));
  if (!values.help) checkCount(command, positionals);
  return {
    values: values as Arguments<OptionSpecs>["values"],
    positionals,
    words: command.words === undefined ? undefined : words,
  };
}

/** Separates berth's arguments from those it passes on: all after `--`, or from the first word that is not berth's. */
function split(command: Command, specs: OptionSpecs, argv: readonly string[]) {
  const at = argv.indexOf("--");
  if (at >= 0) return { own: argv.slice(0, at), words: argv.slice(at + 1) };
  if (command.words === undefined) return { own: argv, words: undefined };
  const places = tokensOf(specs, argv).filter(({ kind }) => kind === "positional");
  const first = places[command.positionals.length]?.index;
  if (first === undefined) return { own: argv, words: undefined };
  return { own: argv.slice(0, first), words: argv.slice(first) };
}

function tokensOf(specs: OptionSpecs, argv: readonly string[]) {
  const options = Object.fromEntries(
    Object.entries(specs).map(([name, { type, short, multiple = false }]) => [
      name,
      { type, multiple, ...(short === undefined ? {} : { short }) },
    ]),
  );
  return parseArgs({ args: [...argv], options, strict: false, allowPositionals: true, tokens: true }).tokens;
}

/** An absent flag is false, an absent list is empty, any other absent option is undefined. */
function emptyValues(specs: OptionSpecs): Record<string, unknown> {
  const nothing = ({ type, multiple }: OptionSpecs[string]) =>
    type === "boolean" ? false : multiple ? [] : undefined;
  return Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, nothing(spec)]));
}

function take(
  values: Record<string, unknown>,
  command: Command,
  specs: OptionSpecs,
  token: OptionToken,
): void {
  const { name, rawName, value, inlineValue } = token;
  const spec = Object.hasOwn(specs, name) ? specs[name] : undefined;
  if (!spec) throw unknownOption(command, specs, rawName);
  if (spec.type === "boolean") {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value`, [seeHelp(command)]);
    values[name] = true;
    return;
  }
  // Otherwise the next option would become the value.
  const swallowed = !inlineValue && value !== undefined && value.length > 1 && value.startsWith("-");
  if (value === undefined || swallowed) {
    const form = `${rawName} ${spec.value ?? "VALUE"}`;
    const advice = swallowed ? [`a value that begins with - is written ${rawName}=${value}`] : [];
    throw new UsageError(`${rawName} needs a value: ${form}`, [...advice, seeHelp(command)]);
  }
  if (spec.multiple) (values[name] as string[]).push(value);
  else values[name] = value;
}

function unknownOption(command: Command, specs: OptionSpecs, rawName: string): UsageError {
  const meant = nearest(
    rawName,
    Object.keys(specs).map((name) => `--${name}`),
  );
  const advice = meant === undefined ? [] : [`did you mean ${meant}?`];
  return new UsageError(`berth ${command.name} has no option ${rawName}`, [...advice, seeHelp(command)]);
}

function checkCount(command: Command, positionals: readonly string[]): void {
  const wanted = command.positionals;
  const least = wanted.filter((name) => !name.startsWith("[")).length;
  const most = wanted.some((name) => name.includes("...")) ? Number.POSITIVE_INFINITY : wanted.length;
  if (positionals.length < least) {
    const missing = wanted[positionals.length]?.replace("...", "");
    throw new UsageError(`${missing} is missing: ${usageLine(command)}`, [seeHelp(command)]);
  }
  if (positionals.length > most)
    throw new UsageError(`${positionals[most]} is one too many: ${usageLine(command)}`, [seeHelp(command)]);
}

export function usageLine({ name, positionals, words, options }: Command): string {
  const flags = Object.keys(options).length > 0 ? " [OPTIONS]" : "";
  const places = positionals.map((place) => ` ${place}`).join("");
  return `berth ${name}${flags}${places}${words === undefined ? "" : ` -- ${words}`}`;
}

function seeHelp({ name }: Command): string {
  return `berth ${name} --help shows examples`;
}
