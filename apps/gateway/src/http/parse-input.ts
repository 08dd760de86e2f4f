import { setImmediate as nextTurn } from "node:timers/promises";
import { maxProblems, problemsOf } from "@berth/protocol";
import type { z } from "zod";
import { Problem } from "./problem.ts";

/** Largest input, per job or body. Zod makes an issue per wrong value; at this size it takes about 0.1 s at worst. */
const maxValues = 100_000;
/** Yields to other requests this often while working on a list. */
const turnMs = 10;

export type ParsedInput<T> = { readonly data: T } | { readonly problems: readonly string[] };

/** Parses input in bounded time. `index` is the item's position in a list. */
export function parseInput<S extends z.ZodType>(
  schema: S,
  value: unknown,
  index?: number,
): ParsedInput<z.output<S>> {
  const above = index === undefined ? [] : [index];
  if (hasMoreValues(value, maxValues)) {
    const message = `it has more than ${maxValues} values; send it in parts`;
    return { problems: problemsOf({ issues: [{ path: [], message }] }, above) };
  }
  const parsed = schema.safeParse(value);
  return parsed.success ? { data: parsed.data } : { problems: problemsOf(parsed.error, above) };
}

/** Parses a body that is one item or a list. Stops after the maximum of reported problems. */
export async function parseItems<S extends z.ZodType>(
  schema: S,
  value: unknown,
  maxItems: number,
): Promise<z.output<S> | z.output<S>[]> {
  if (!Array.isArray(value)) return dataOf(parseInput(schema, value), "body");
  if (value.length < 1 || value.length > maxItems) {
    return dataOf(
      { problems: [`a list has 1 to ${maxItems} items, and this one has ${value.length}`] },
      "body",
    );
  }
  const items: z.output<S>[] = [];
  const problems: string[] = [];
  for await (const [index, one] of inTurns(value.entries())) {
    const parsed = parseInput(schema, one, index);
    if ("data" in parsed) items.push(parsed.data);
    else problems.push(...parsed.problems);
    if (problems.length >= maxProblems) break;
  }
  return dataOf(
    problems.length === 0 ? { data: items } : { problems: problems.slice(0, maxProblems) },
    "body",
  );
}

/** Iterates over items and lets other requests run in between. */
async function* inTurns<T>(items: Iterable<T>): AsyncGenerator<T> {
  let endsMs = performance.now() + turnMs;
  for (const item of items) {
    if (performance.now() >= endsMs) {
      await nextTurn();
      endsMs = performance.now() + turnMs;
    }
    yield item;
  }
}

export async function mapInTurns<T, R>(
  items: readonly T[],
  map: (item: T, index: number) => R,
): Promise<R[]> {
  const made: R[] = [];
  for await (const [index, item] of inTurns(items.entries())) made.push(map(item, index));
  return made;
}

/** The parsed value; otherwise throws its problems as the answer. */
export function dataOf<T>(parsed: ParsedInput<T>, where: string): T {
  if ("data" in parsed) return parsed.data;
  const { problems } = parsed;
  throw new Problem("invalid-request", `the ${where} is invalid: ${problems[0]}`, { problems });
}

/** Iterative, because JSON may be nested deeper than the stack. */
function hasMoreValues(value: unknown, max: number): boolean {
  const unseen: unknown[] = [value];
  let seen = 1;
  for (let one = unseen.pop(); one !== undefined; one = unseen.pop()) {
    if (typeof one !== "object" || one === null) continue;
    const inner = Object.values(one);
    seen += inner.length;
    if (seen > max) return true;
    for (const child of inner) if (typeof child === "object" && child !== null) unseen.push(child);
  }
  return false;
}
