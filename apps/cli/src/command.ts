import type { Context } from "./context.ts";

export interface OptionSpec {
  readonly type: "boolean" | "string";
  readonly short?: string;
  /** The option may be repeated. */
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
  /** The arguments after `--`; undefined without `--`. */
  readonly words: readonly string[] | undefined;
}

export interface Example {
  readonly line: string;
  readonly note: string;
}

export interface CommandSpec<O extends OptionSpecs> {
  /** One word, or two: `batch run`. */
  readonly name: string;
  readonly summary: string;
  /** `NAME` is required, `[NAME]` optional, `NAME...` one or more. */
  readonly positionals: readonly string[];
  /** What may stand after `--`; passed on unchanged. */
  readonly words?: string;
  readonly about?: string;
  readonly examples: readonly Example[];
  readonly options: O;
  /** Returns the exit code. */
  readonly run: (args: Arguments<O>, context: Context) => Promise<number>;
}

export type Command = CommandSpec<OptionSpecs>;

/** Keeps the options' types for `run` and hides them from every other caller. */
export function command<const O extends OptionSpecs>(spec: CommandSpec<O>): Command {
  return spec as unknown as Command;
}

/** Options of every command. */
export const commonOptions = {
  json: { type: "boolean", about: "answer as JSON, for programs" },
  help: { type: "boolean", short: "h", about: "this text" },
} as const satisfies OptionSpecs;

/** Options that choose a job's sandbox; for commands that submit jobs. */
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
    about: "which jobs share the sandbox: tenant, session, agent or shared (tenant)",
  },
  pool: { type: "string", value: "NAME", about: "workers that may run it; granted to the tenant (default)" },
  profile: { type: "string", value: "NAME", about: "a profile that the tenant was granted (default)" },
} as const satisfies OptionSpecs;
