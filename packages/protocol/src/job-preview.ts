import type { PrepareTool } from "./access-rules.ts";
import type { Job } from "./job.ts";
import type { JobRequest } from "./job-kinds.ts";

const shortLength = 2_000;
/** Bound on the whole preview: a request may have 64 MiB. */
const wholeLength = 256 * 1024;
const hidden = /\p{Cf}|[\u2028\u2029]|(?![\n\t])\p{Cc}/gu;
const lineBreak = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/;

type Previewed = Pick<Job, "agent" | "profile" | "settings" | "forkOf" | "discard" | "secrets" | "request">;

export interface PreviewOptions {
  /** What a custom tool runs, as it is defined now. */
  readonly prepare?: PrepareTool | undefined;
  /** Masks secret values. */
  readonly mask?: ((text: string) => string) | undefined;
}

/**
 * Everything that a job would run, for a person who decides about it. The command comes first. Each line break of the job's own text is
 * followed by a mark or is inside a JSON string, so no part can pass for another field.
 */
export function jobPreview(job: Previewed, { prepare, mask = same }: PreviewOptions = {}): string {
  const { request, secrets, ...rest } = job;
  const { agent, profile, settings, forkOf, discard } = rest;
  const lines = [
    ...requestLines(request, prepare, mask),
    ...fieldLines({ agent, profile, settings, forkOf, discard }, mask),
    ...(secrets === undefined ? [] : [`secrets: ${Object.keys(secrets).sort().join(", ")}`]),
  ];
  return cut(shownCharacters(lines.join("\n")), wholeLength);
}

/** For lists and messages. A cut preview ends with how much is missing. */
export function shortPreview(whole: string, length = shortLength): string {
  return cut(whole, length);
}

function requestLines(
  request: JobRequest,
  prepare: PrepareTool | undefined,
  mask: (text: string) => string,
): string[] {
  switch (request.kind) {
    case "exec": {
      const { kind, command, argv, ...rest } = request;
      const run =
        command === undefined ? `argv: ${wordsOf(argv.map(mask))}` : marked("command", mask(command));
      return [run, ...fieldLines(rest, mask)];
    }
    case "code": {
      const { kind, source, ...rest } = request;
      return [marked("source", mask(source)), ...fieldLines(rest, mask)];
    }
    case "tool": {
      const { name, args } = request;
      return [`tool: ${name}`, ...toolLines(request, prepare, mask), ...fieldLines({ args }, mask)];
    }
    case "steps": {
      const { steps, onFailure } = request;
      const shown = steps.flatMap((step, index) => [
        `step ${index + 1}: ${json(step, mask)}`,
        ...(step.kind === "tool" ? toolLines(step, prepare, mask) : []),
      ]);
      return [...shown, `onFailure: ${onFailure}`];
    }
    default: {
      const { kind, ...rest } = request;
      return [kind, ...fieldLines(rest, mask)];
    }
  }
}

function toolLines(
  call: Extract<JobRequest, { kind: "tool" }>,
  prepare: PrepareTool | undefined,
  mask: (text: string) => string,
): string[] {
  if (!prepare) return [];
  const { argv, ...rest } = prepare(call).command;
  return [`runs: ${wordsOf(argv.map(mask))}`, ...fieldLines(rest, mask)];
}

/** Each field that is not empty, on a line of its own. */
function fieldLines(fields: Readonly<Record<string, unknown>>, mask: (text: string) => string): string[] {
  const filled = Object.entries(fields).filter(([, value]) => !isEmpty(value));
  return filled.map(([name, value]) => `${name}: ${json(value, mask)}`);
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === "" || value === false) return true;
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function json(value: unknown, mask: (text: string) => string): string {
  return JSON.stringify(value, (_name, one: unknown) => (typeof one === "string" ? mask(one) : one));
}

function marked(name: string, text: string): string {
  const lines = text.split(lineBreak);
  if (lines.length === 1) return `${name}: ${text}`;
  return [`${name}:`, ...lines.map((line) => `| ${line}`)].join("\n");
}

function wordsOf(argv: readonly string[]): string {
  return argv.map((word) => JSON.stringify(word)).join(" ");
}

function cut(text: string, length: number): string {
  return text.length <= length
    ? text
    : `${text.slice(0, length)}… (${text.length - length} more characters are not shown)`;
}

/** Escapes invisible characters, which could hide or reorder the text beside them. */
function shownCharacters(text: string): string {
  return text.replaceAll(hidden, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

function same(text: string): string {
  return text;
}
