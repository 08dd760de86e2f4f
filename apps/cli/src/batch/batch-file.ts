import { dueTime, type Job, job as jobSchema, type Labels, problemsOf } from "@berth/protocol";
import { UsageError } from "../complaint.ts";
import type { JobOrder } from "../door.ts";
import { fileLines } from "./file-lines.ts";

export interface BatchLine {
  /** Position among the orders, from 0; empty lines do not count. */
  readonly index: number;
  /** Line number in the file, from 1. */
  readonly line: number;
  readonly order: JobOrder;
  /** The order with its defaults filled in. */
  readonly job: Pick<Job, "tenant" | "session" | "agent" | "labels">;
}

const shownProblems = 10;

/** Counts the orders of a file. Checks every line before anything is submitted, and names each bad line by its number. */
export async function checkBatchFile(file: string, labels: Labels): Promise<number> {
  const problems: string[] = [];
  let count = 0;
  for await (const { number, text } of fileLines(file)) {
    if (text.trim() === "") continue;
    count++;
    const read = readOrder(text, labels);
    if ("problem" in read) problems.push(`line ${number}: ${read.problem}`);
  }
  if (problems.length > 0) {
    const more = problems.length > shownProblems ? [`and ${problems.length - shownProblems} more`] : [];
    throw new UsageError(`${problems.length} of ${count} lines are not jobs; nothing was submitted`, [
      ...problems.slice(0, shownProblems),
      ...more,
      "berth batch run --help shows what a line looks like",
    ]);
  }
  return count;
}

/** Reads the orders one at a time, so the whole file is never in memory. An order's own labels win over the common ones. */
export async function* batchLines(file: string, labels: Labels): AsyncGenerator<BatchLine> {
  let index = 0;
  for await (const { number, text } of fileLines(file)) {
    if (text.trim() === "") continue;
    const read = readOrder(text, labels);
    if ("problem" in read) throw new UsageError(`${file} changed: line ${number}: ${read.problem}`);
    yield { index: index++, line: number, ...read };
  }
}

function readOrder(text: string, labels: Labels): Pick<BatchLine, "order" | "job"> | { problem: string } {
  let order: JobOrder;
  try {
    order = JSON.parse(text);
  } catch (error) {
    return { problem: `it is not JSON (${(error as Error).message})` };
  }
  if (typeof order !== "object" || order === null) return { problem: "it is not an object" };
  if (order.id !== undefined) return { problem: "id: is given by the batch" };
  if (Object.keys(labels).length > 0 && (order.labels === undefined || typeof order.labels === "object"))
    order = { ...order, labels: { ...labels, ...order.labels } };
  const { delayMs, runAtMs, ...rest } = order;
  const due = dueTime.safeParse({ delayMs, runAtMs });
  const parsed = jobSchema.safeParse({ ...rest, version: 1, id: "line" });
  const problems = [due, parsed].flatMap(({ error }) => (error ? problemsOf(error) : []));
  if (!parsed.success || problems.length > 0) return { problem: problems.join("; ") };
  const { tenant, session, agent, labels: all } = parsed.data;
  return { order, job: { tenant, session, labels: all, ...(agent === undefined ? {} : { agent }) } };
}
