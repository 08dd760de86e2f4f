import type { VirtualTime } from "./virtual-time.ts";

interface Note {
  readonly atMs: number;
  readonly who: string;
  readonly what: string;
}

/** What happened, in order. Read by people when a rule was broken. */
export class Trace {
  readonly #time: VirtualTime;
  readonly #notes: Note[] = [];
  readonly counts = new Map<string, number>();

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  /** `kind` is counted: a run in which nothing went wrong shows nothing. */
  note(who: string, kind: string, detail = ""): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    this.#notes.push({ atMs: this.#time.nowMs, who, what: detail === "" ? kind : `${kind} ${detail}` });
  }

  /** The last lines that say one of the words, or all of the last lines. */
  lines(most: number, words: readonly string[] = []): string {
    const about = ({ who, what }: Note) =>
      words.length === 0 || words.some((word) => who === word || what.split(/[\s,]/).includes(word));
    return this.#notes
      .filter(about)
      .slice(-most)
      .map(({ atMs, who, what }) => `${atMs.toFixed(0).padStart(8)}  ${who.padEnd(10)} ${what}`)
      .join("\n");
  }
}
