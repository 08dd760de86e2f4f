import { Refusal } from "../run-context.ts";
import type { Hunk, HunkLine } from "./unified-diff.ts";

export type Applied =
  | { readonly kind: "applied"; readonly content: string }
  | { readonly kind: "failed"; readonly problems: readonly string[] };

const maxLines = 500_000;
/** Splitting and joining a file costs about as much per line as this many comparisons. */
const workPerLine = 40;

/** Maximum of line comparisons per patch. They block the worker's thread: 0.3 s of CPU for all of these. */
export class SearchBudget {
  #left = 40_000_000;

  spend(comparisons: number): void {
    this.#left -= comparisons;
    if (this.#left < 0)
      throw new Refusal("too-large", "the patch takes too long to place; split it, or edit instead");
  }
}

/**
 * Applies the hunks to a file's content. A hunk goes to the line in its header, shifted like the hunk before it, or to the nearest place
 * after that one where all its old lines match exactly. Content has one character per byte.
 */
export function applyHunks(content: string, hunks: readonly Hunk[], budget = new SearchBudget()): Applied {
  const lines = splitLines(content);
  if (!lines)
    return { kind: "failed", problems: [`it has more than ${maxLines} lines; run a command instead`] };
  budget.spend(lines.length * workPerLine);
  const adapted = withLineEndsOf(lines, hunks);
  const finder = new HunkFinder(lines, adapted, budget);
  const problems: string[] = [];
  const result: string[] = [];
  let done = 0;
  let drift = 0;
  for (const [index, hunk] of adapted.entries()) {
    const old = hunk.lines.filter(({ sign }) => sign !== "+");
    // Without old lines, the header's number is the line before the new ones.
    const stated = old.length === 0 ? hunk.oldStart : hunk.oldStart - 1;
    const at = old.length === 0 ? stated + drift : finder.find(index, stated + drift, done);
    if (at === undefined || at < done || at > lines.length) {
      problems.push(
        `hunk ${index + 1} (${hunk.header}) ${mismatchText(lines, old, Math.max(stated + drift, 0))}`,
      );
      continue;
    }
    drift = at - stated;
    pushAll(result, lines.slice(done, at));
    pushAll(
      result,
      hunk.lines.filter(({ sign }) => sign !== "-").map(({ text }) => text),
    );
    done = at + old.length;
  }
  pushAll(result, lines.slice(done));
  if (problems.length === 0 && result.some((line, at) => !line.endsWith("\n") && at < result.length - 1)) {
    problems.push("it would put text after a last line that has no newline");
  }
  return problems.length > 0 ? { kind: "failed", problems } : { kind: "applied", content: result.join("") };
}

/** Finds a hunk's old lines. Equal lines have equal numbers, so that long lines cost no more than short ones. */
class HunkFinder {
  readonly #file: Int32Array;
  readonly #hunks: readonly Int32Array[];
  readonly #budget: SearchBudget;

  constructor(lines: readonly string[], hunks: readonly Hunk[], budget: SearchBudget) {
    const numbers = new Map<string, number>();
    const numberOf = (text: string) => {
      const known = numbers.get(text) ?? numbers.size;
      numbers.set(text, known);
      return known;
    };
    this.#hunks = hunks.map((hunk) =>
      Int32Array.from(
        hunk.lines.filter(({ sign }) => sign !== "+"),
        ({ text }) => numberOf(text),
      ),
    );
    this.#file = Int32Array.from(lines, (text) => numbers.get(text) ?? -1);
    this.#budget = budget;
  }

  /** The match nearest to `stated`, not before `from`. */
  find(index: number, stated: number, from: number): number | undefined {
    const wanted = this.#hunks[index] ?? new Int32Array();
    const last = this.#file.length - wanted.length;
    const expected = Math.max(from, Math.min(stated, last));
    for (let distance = 0; expected - distance >= from || expected + distance <= last; distance++) {
      const before = expected - distance;
      if (before >= from && before <= last && this.#standsAt(wanted, before)) return before;
      const after = expected + distance;
      if (distance > 0 && after >= from && after <= last && this.#standsAt(wanted, after)) return after;
      this.#budget.spend(1);
    }
    return undefined;
  }

  #standsAt(wanted: Int32Array, at: number): boolean {
    let index = 0;
    while (index < wanted.length && wanted[index] === this.#file[at + index]) index++;
    this.#budget.spend(index + 1);
    return index === wanted.length;
  }
}

/** Lines with their line ends; undefined if there are too many. */
function splitLines(content: string): string[] | undefined {
  const lines: string[] = [];
  let at = 0;
  while (at < content.length) {
    const end = content.indexOf("\n", at);
    const next = end < 0 ? content.length : end + 1;
    lines.push(content.slice(at, next));
    if (lines.length > maxLines) return undefined;
    at = next;
  }
  return lines;
}

/** Applies a diff with LF line ends to a file with CRLF, and the other way round. */
function withLineEndsOf(lines: readonly string[], hunks: readonly Hunk[]): readonly Hunk[] {
  const file = lineEnds(lines);
  const all = hunks.flatMap((hunk) => hunk.lines);
  const hasOld = all.some(({ sign }) => sign !== "+");
  const diff = lineEnds(all.map(({ text }) => text));
  if (!hasOld || file === undefined || diff === undefined || file === diff) return hunks;
  const change = (line: HunkLine): HunkLine => ({ ...line, text: line.text.replace(/\r?\n$/, file) });
  return hunks.map((hunk) => ({ ...hunk, lines: hunk.lines.map(change) }));
}

/** Undefined if line ends are mixed, or there are none. */
function lineEnds(lines: readonly string[]): "\n" | "\r\n" | undefined {
  let plain = 0;
  let returns = 0;
  for (const line of lines) {
    if (line.endsWith("\r\n")) returns++;
    else if (line.endsWith("\n")) plain++;
    if (plain > 0 && returns > 0) return undefined;
  }
  if (plain === 0 && returns === 0) return undefined;
  return returns > 0 ? "\r\n" : "\n";
}

function mismatchText(lines: readonly string[], old: readonly HunkLine[], at: number): string {
  const index = old.findIndex(({ text }, offset) => lines[at + offset] !== text);
  const wanted = old[index];
  if (!wanted) return `does not fit: the file has ${lines.length} lines`;
  const found = lines[at + index];
  if (found === undefined) {
    return `does not match anywhere: it has ${shown(wanted.text)} at line ${at + index + 1}, and the file has ${lines.length} lines`;
  }
  return `does not match anywhere: line ${at + index + 1} is ${shown(found)}, where the patch has ${shown(wanted.text)}`;
}

function shown(line: string): string {
  const text = Buffer.from(line.replace(/\n$/, ""), "latin1").toString("utf8");
  const cut = text.length > 80 ? `${text.slice(0, 80)}…` : text;
  return `${JSON.stringify(cut)}${line.endsWith("\n") ? "" : " without a newline"}`;
}

/** Not with spread: a call takes only some hundred thousand arguments. */
function pushAll(to: string[], from: readonly string[]): void {
  for (const line of from) to.push(line);
}
