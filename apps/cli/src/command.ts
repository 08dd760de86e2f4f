import type { Context } from "./context.ts";

export interface OptionSpec {
  readonly type: "boolean" | "string";
  readonly short?: string;
  /** May be given more than once. */
  readonly multiple?: boolean;
  /** The placeholder for its value in the help. */
  readonly value?: string;
  readonly about: string;
}
export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

export type OptionValues<O extends OptionSpecs> = {
  readonly [K in keyof O]: O[K]["type"] extends "boolean"
    ? boolean
    : O[K] extends { readonly multiple: true }
      ? readonly string[]
      : string | undefined;
};

export interface Arguments<O extends OptionSpecs> {
  readonly values: OptionValues<O>;
  readonly positionals: readonly string[];
  /** What came behind `--`; undefined when there was none. */
  readonly words: readonly string[] | undefined;
}

export interface Example {
  readonly line: string;
  readonly says: string;
}

export interface CommandSpec<O extends OptionSpecs> {
  /** One word, or two: `batch run`. */
  readonly name: string;
  readonly summary: string;
  /** `NAME`, `[NAME]` may be left out, `NAME...` one or more. */
  readonly positionals: readonly string[];
  /** What may stand behind `--`, and is then passed on untouched. */
  readonly words?: string;
  readonly about?: string;
  readonly examples: readonly Example[];
  readonly options: O;
  /** Gives the exit code. */
  readonly run: (args: Arguments<O>, context: Context) => Promise<number>;
}

export type Command = CommandSpec<OptionSpecs>;

/** Keeps the options' types for `run`, and forgets them for everybody else. */
export function command<const O extends OptionSpecs>(spec: CommandSpec<O>): Command {
  return spec as unknown as Command;
}

/** What every command takes. */
export const commonOptions = {
  json: { type: "boolean", about: "answer as JSON, for programs" },
  help: { type: "boolean", short: "h", about: "this text" },
} as const satisfies OptionSpecs;

/** Which sandbox a job goes to, and how; for commands that make jobs. */
export const jobOptions = {
  session: {
    type: "string",
    short: "s",
    value: "NAME",
    about: "its jobs run in order, one at a time (main)",
  },
  agent: { type: "string", value: "NAME", about: "agent the job belongs to" },
  scope: {
    type: "string",
    value: "SCOPE",
    about: "who shares the sandbox: tenant, session, agent or shared (tenant)",
  },
  pool: { type: "string", value: "NAME", about: "workers that may run it; granted to the tenant (default)" },
  profile: { type: "string", value: "NAME", about: "a profile that the tenant was granted (default)" },
} as const satisfies OptionSpecs;
