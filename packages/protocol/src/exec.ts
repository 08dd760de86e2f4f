import { z } from "zod";
import { variableName } from "./environment-names.ts";
import type { Outcome } from "./outcome.ts";
import { execLayer } from "./profile-layer.ts";
import { workspacePath } from "./workspace-path.ts";

const noNul = (text: string) => !text.includes("\0");
const text = z.string().refine(noNul, { error: "it has a NUL byte" });

/** One argument is at most 128 KiB in the kernel (MAX_ARG_STRLEN); refusing here names the reason. */
const argument = text.refine((value) => Buffer.byteLength(value) < 131_072, {
  error: "an argument is at most 131,071 bytes; write it to a file and run that",
});

const bytes = z.custom<Uint8Array>((value) => value instanceof Uint8Array);

const environment = z.record(variableName, argument);

const common = {
  cwd: workspacePath.default("").describe("directory beneath the workspace"),
  env: environment.default({}),
  stdin: z.union([z.string(), bytes], { error: "it is neither text nor bytes" }).optional(),
  limits: execLayer.optional().describe("may only tighten the profile's"),
  background: z
    .enum(["keep", "kill"])
    .default("keep")
    .describe("what becomes of processes the command leaves behind when it ends by itself"),
};

/** A command or an argument vector. One object, not a union of two, so that zod tries (and reports) one form only. */
export const execShape = {
  command: argument.min(1).optional().describe("a command for `sh -c`; give either command or argv"),
  argv: z
    .array(argument)
    .min(1)
    .max(4096)
    .optional()
    .describe("an argument vector, run without a shell; give either command or argv"),
  ...common,
};

export const hasOneForm = ({ command, argv }: { command?: unknown; argv?: unknown }): boolean =>
  (command === undefined) !== (argv === undefined);
export const notOneForm = { path: ["command"], error: "give either command or argv, and not both" };

/** What `hasOneForm` needs of a parsed or given exec. */
export type OneForm<T extends { command?: string | undefined; argv?: string[] | undefined }> =
  | (Omit<T, "command" | "argv"> & { command: string; argv?: undefined })
  | (Omit<T, "command" | "argv"> & { argv: string[]; command?: undefined });

const execObject = z.strictObject(execShape).refine(hasOneForm, notOneForm);
export type ExecRequest = OneForm<z.infer<typeof execObject>>;
export type ExecRequestInput = OneForm<z.input<typeof execObject>>;
export const execRequest = execObject as unknown as z.ZodType<ExecRequest, ExecRequestInput>;

export type OutputStream = "stdout" | "stderr";

export interface OutputChunk {
  readonly stream: OutputStream;
  readonly bytes: Uint8Array;
}

/** Output in order of arrival. `tail` is empty and `cutBytes` is 0 unless it grew past the kept limit. */
export interface KeptOutput {
  readonly head: readonly OutputChunk[];
  readonly tail: readonly OutputChunk[];
  readonly cutBytes: number;
  readonly totalBytes: number;
  /** The part that a cut text shows; absent: both ends. */
  readonly shows?: "start";
}

export interface ExecResult {
  readonly outcome: Outcome;
  readonly output: KeptOutput;
  /** From the command's start to its end, measured in the sandbox. */
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly maxRssBytes: number;
  /** Out-of-memory kills in the sandbox while the command ran, including those of its neighbours. */
  readonly oomKills: number;
  /** Processes that the command left running. */
  readonly backgroundProcesses: number;
}
