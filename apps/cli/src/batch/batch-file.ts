import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import {
  dueTime,
  type Job,
  job as jobSchema,
  problemsOf,
  type SandboxKey,
  sandboxKeyOf,
} from "@berth/protocol";
import { UsageError } from "../complaint.ts";
import type { JobOrder } from "../door.ts";

export interface BatchLine {
  /** Among the orders, from 0; empty lines do not count. */
  readonly index: number;
  readonly order: JobOrder;
  readonly key: SandboxKey;
}

const shownProblems = 10;

/** How many orders a file has. All lines are looked at before anything is submitted, and what is wrong is named by line. */
export async function checkBatchFile(file: string): Promise<number> {
  const problems: string[] = [];
  let count = 0;
  for await (const { number, text } of lines(file)) {
    count++;
    const read = readOrder(text);
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

/** The orders as they are asked for; never the whole file. */
export async function* batchLines(file: string): AsyncGenerator<BatchLine> {
  let index = 0;
  for await (const { number, text } of lines(file)) {
    const read = readOrder(text);
    if ("problem" in read) throw new UsageError(`${file} changed: line ${number}: ${read.problem}`);
    yield { index: index++, ...read };
  }
}

async function* lines(file: string): AsyncGenerator<{ number: number; text: string }> {
  let number = 0;
  const input = createReadStream(file);
  // Without this its error would be nobody's before the first line is asked for.
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  input.once("error", failed.reject);
  const reader = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { value, done } = await Promise.race([reader.next(), failed.promise]);
      if (done) return;
      number++;
      if (value.trim() !== "") yield { number, text: value };
    }
  } finally {
    input.destroy();
  }
}

function readOrder(text: string): { order: JobOrder; key: SandboxKey } | { problem: string } {
  let order: JobOrder;
  try {
    order = JSON.parse(text);
  } catch (error) {
    return { problem: `it is not JSON (${(error as Error).message})` };
  }
  if (typeof order !== "object" || order === null) return { problem: "it is not an object" };
  if (order.id !== undefined) return { problem: "id: is given by the batch" };
  const { delayMs, runAtMs, ...rest } = order;
  const due = dueTime.safeParse({ delayMs, runAtMs });
  const parsed = jobSchema.safeParse({ ...rest, version: 1, id: "line" });
  const problems = [due, parsed].flatMap(({ error }) => (error ? problemsOf(error) : []));
  if (problems.length > 0) return { problem: problems.join("; ") };
  return { order, key: sandboxKeyOf(parsed.data as Job) };
}
