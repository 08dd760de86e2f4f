import { exitCodeOf, type JobResult, type JobTiming, type JobUsage, type Labels } from "@berth/protocol";
import { z } from "zod";
import type { BatchLine } from "./batch-file.ts";

/** One job of a batch as a line of the results file. */
export interface ResultLine {
  /** Position among the jobs of the batch's file, from 0. */
  readonly index: number;
  /** Line number in that file, from 1. */
  readonly line: number;
  readonly id: string;
  readonly tenant: string;
  readonly session: string;
  readonly agent?: string | undefined;
  readonly labels?: Labels;
  readonly outcome: JobResult["outcome"];
  /** The shell's exit code; absent when no command ran to its end. */
  readonly exitCode?: number;
  readonly timing: JobTiming;
  readonly usage?: JobUsage;
  readonly worker?: string;
  readonly host?: string;
  readonly value: JobResult["value"];
  readonly text?: string;
}

export function resultLine(
  { index, line, job }: Omit<BatchLine, "order">,
  { id, result }: { readonly id: string; readonly result: JobResult },
): ResultLine {
  const { outcome, timing, usage, worker, host, value, text } = result;
  const { tenant, session, agent } = job;
  const labels = result.labels ?? job.labels;
  const exitCode = exitCodeOf(outcome);
  return {
    ...{ index, line, id, tenant, session },
    ...(agent === undefined ? {} : { agent }),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    outcome,
    ...(exitCode === undefined ? {} : { exitCode }),
    timing,
    ...(usage === undefined ? {} : { usage }),
    ...(worker === undefined ? {} : { worker }),
    ...(host === undefined ? {} : { host }),
    value,
    ...(text === undefined ? {} : { text }),
  };
}

/** The fields that later runs need. Lines of older versions lack tenant, session and number. */
const stored = z.looseObject({
  index: z.int().nonnegative(),
  id: z.string(),
  line: z.number().default(0),
  tenant: z.string().default(""),
  session: z.string().default(""),
  outcome: z.looseObject({ kind: z.string() }),
  timing: z.looseObject({ wallMs: z.number(), cpuMs: z.number() }),
  value: z.looseObject({}),
});

/** Undefined when the text is not a line of results. */
export function readResultLine(text: string): ResultLine | undefined {
  try {
    return stored.safeParse(JSON.parse(text)).data as ResultLine | undefined;
  } catch {
    return undefined;
  }
}

/** Whether a text can be the beginning of a line of results, as `resultLine` writes it. */
export function beginsResultLine(text: string): boolean {
  const first = '{"index":';
  return text.startsWith(first.slice(0, text.length));
}
