import { spanText } from "./quantities.ts";
import type { Terminal } from "./terminal.ts";

const redrawMs = 100;
/** The rate is that of the last seconds: a cold start must not spoil the estimate for an hour. */
const rateWindowMs = 10_000;

export interface ProgressUnit {
  /** `12,000 jobs`, `4.5 MB`. */
  readonly amount: (count: number) => string;
}

/** One moving line on stderr: how much of how much, how fast, how much longer. Nothing where nobody looks. */
export class ProgressBar {
  readonly #terminal: Terminal;
  readonly #title: string;
  readonly #unit: ProgressUnit;
  readonly #seen: { atMs: number; done: number }[] = [];
  #drawnAtMs = Number.NEGATIVE_INFINITY;
  #drawn = false;

  constructor(terminal: Terminal, title: string, unit: ProgressUnit) {
    this.#terminal = terminal;
    this.#title = title;
    this.#unit = unit;
  }

  /** `total` is undefined when nobody knows it yet. */
  show(done: number, total: number | undefined, more = ""): void {
    const columns = this.#terminal.noteColumns;
    const now = performance.now();
    if (columns === undefined || (now - this.#drawnAtMs < redrawMs && done !== total)) return;
    this.#drawnAtMs = now;
    this.#drawn = true;
    process.stderr.write(`\r\x1b[2K${this.#line(done, total, more, now).slice(0, columns - 1)}`);
  }

  /** Leaves the line as it is, or takes it away. */
  end(keep = true): void {
    if (!this.#drawn) return;
    process.stderr.write(keep ? "\n" : "\r\x1b[2K");
    this.#drawn = false;
  }

  #line(done: number, total: number | undefined, more: string, now: number): string {
    const perSecond = this.#rate(done, now);
    const { amount } = this.#unit;
    const rate = perSecond > 0 ? ` ${amount(perSecond)}/s` : "";
    if (total === undefined) return `${this.#title} ${amount(done)}${rate}${more}`;
    const share = total === 0 ? 1 : Math.min(1, done / total);
    const left =
      perSecond > 0 && done < total ? ` ${spanText(((total - done) / perSecond) * 1_000)} left` : "";
    return `${this.#title} ${bar(share)} ${Math.floor(share * 100)} % ${amount(done)} of ${amount(total)}${rate}${left}${more}`;
  }

  #rate(done: number, now: number): number {
    this.#seen.push({ atMs: now, done });
    while (this.#seen.length > 2 && now - (this.#seen[0]?.atMs ?? now) > rateWindowMs) this.#seen.shift();
    const first = this.#seen[0];
    const ms = now - (first?.atMs ?? now);
    return first && ms > 0 ? ((done - first.done) / ms) * 1_000 : 0;
  }
}

export function bar(share: number, width = 24): string {
  const full = Math.round(share * width);
  return `[${"█".repeat(full)}${"·".repeat(width - full)}]`;
}
