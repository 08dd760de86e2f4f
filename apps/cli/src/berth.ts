import { nearest } from "@berth/protocol";
import type { Command } from "./command.ts";
import { commandNames, loadCommand } from "./commands.ts";
import { type Complaint, ConfigError, complaintOf, UsageError } from "./complaint.ts";
import { readConfig, settingWarnings } from "./config.ts";
import type { Context } from "./context.ts";
import { openDoor } from "./door/open-door.ts";
import type { Door } from "./door.ts";
import { exitCodes } from "./exit-codes.ts";
import { commandHelp, environmentHelp, overview, reference } from "./help.ts";
import { Interrupts } from "./interrupts.ts";
import { parse } from "./parse.ts";
import { printable } from "./terminal/printable.ts";
import { isBrokenPipe, Terminal } from "./terminal/terminal.ts";

/** Runs one command line and returns its exit code. */
export async function berth(argv: readonly string[]): Promise<number> {
  const end = argv.indexOf("--");
  const json = argv.slice(0, end < 0 ? undefined : end).includes("--json");
  const read = readConfig();
  const noColor = "problems" in read || read.config.noColor;
  const terminal = new Terminal({ noColor, json });
  try {
    return await run(argv, terminal, () => {
      if ("problems" in read) throw new ConfigError(read.problems);
      return read.config;
    });
  } catch (error) {
    if (isBrokenPipe(error)) return exitCodes.brokenPipe;
    const complaint = complaintOf(error);
    if (!complaint) throw error;
    complain(terminal, complaint);
    return complaint.exitCode;
  }
}

async function run(
  argv: readonly string[],
  terminal: Terminal,
  config: () => Context["config"],
): Promise<number> {
  const [first] = argv;
  if (first === undefined) {
    terminal.note(await overview());
    return exitCodes.usage;
  }
  if (first === "help" || first === "--help" || first === "-h") return help(argv.slice(1), terminal);
  if (first === "--version" || first === "-v") return run(["version", ...argv.slice(1)], terminal, config);
  const { command, rest } = await find(argv);
  const args = parse(command, rest);
  // Until here --json was a guess: the word may belong to the command that `exec` runs.
  terminal.json = Boolean(args.values.json);
  if (args.values.help) {
    await terminal.write(commandHelp(command));
    return exitCodes.ok;
  }
  const opened: { door?: Promise<Door> } = {};
  const known = config();
  for (const warning of settingWarnings()) terminal.note(`berth: warning: ${printable(warning)}`);
  const context: Context = {
    config: known,
    terminal,
    interrupts: new Interrupts(),
    directory: known.directory,
    door: () => (opened.door ??= openDoor(known)),
  };
  try {
    return await command.run(args, context);
  } finally {
    await opened.door?.then((door) => door.close()).catch(() => {});
  }
}

/** Looks a command up by its first two words, then by its first. */
async function find(argv: readonly string[]): Promise<{ command: Command; rest: readonly string[] }> {
  const [first = "", second = ""] = argv;
  const two = await loadCommand(`${first} ${second}`);
  if (two) return { command: two, rest: argv.slice(2) };
  const one = await loadCommand(first);
  if (one) return { command: one, rest: argv.slice(1) };
  const within = commandNames.filter((name) => name.startsWith(`${first} `));
  if (within.length > 0)
    throw new UsageError(`berth ${first} is one of: ${within.map((name) => `berth ${name}`).join(", ")}`);
  const meant = nearest(first, [
    ...new Set(commandNames.flatMap((name) => [name, name.split(" ")[0] ?? name])),
  ]);
  throw new UsageError(`there is no command ${first}`, [
    ...(meant === undefined ? [] : [`did you mean berth ${meant}?`]),
    "berth help lists them",
  ]);
}

async function help(words: readonly string[], terminal: Terminal): Promise<number> {
  const named = words.filter((word) => !word.startsWith("-"));
  if (named.length === 0) await terminal.write(await overview());
  else if (named[0] === "all") await terminal.write(await reference());
  else if (named[0] === "environment") await terminal.write(environmentHelp());
  else await terminal.write(commandHelp((await find(named)).command));
  return exitCodes.ok;
}

/** Prints one sentence, then what to do. */
function complain(terminal: Terminal, { message, code, advice }: Complaint): void {
  if (terminal.json) {
    terminal.note(JSON.stringify({ error: { code: code ?? null, message, advice } }));
    return;
  }
  terminal.note(`berth: ${printable(message)}${code === undefined ? "" : ` [${code}]`}`);
  for (const line of advice) terminal.note(`  ${printable(line)}`);
}
