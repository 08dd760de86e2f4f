import { Pace } from "./pace.ts";
import { spanText } from "./quantities.ts";
import type { Terminal } from "./terminal.ts";

const redrawMs = 100;

export interface ProgressUnit {
  /** For example `12,000 jobs` or `4.5 MB`. */
  readonly amount: (count: number) => string;
  /** The rate, where it needs more digits: `84.1`. */
  readonly rate?: (perSecond: number) => string;
}

/** A progress line on stderr: how much of how much, rate, time left. Draws nothing when stderr is not a terminal. */
export class ProgressBar {
  readonly #terminal: Terminal;
  readonly #title: string;
  readonly #unit: ProgressUnit;
  readonly #pace = new Pace();
  #drawnAtMs = Number.NEGATIVE_INFINITY;
  #drawn = false;

  constructor(terminal: Terminal, title: string, unit: ProgressUnit) {
    this.#terminal = terminal;
    this.#title = title;
    this.#unit = unit;
  }

  /** `total` is undefined while unknown. */
  show(done: number, total: number | undefined, more = ""): void {
    const columns = this.#terminal.noteColumns;
    const now = performance.now();
    if (columns === undefined || (now - this.#drawnAtMs < redrawMs && done !== total)) return;
    this.#drawnAtMs = now;
    this.#drawn = true;
    process.stderr.write(`\r\x1b[2K${this.#line(done, total, more, now).slice(0, columns - 1)}`);
  }

  /** Keeps the line, or erases it. */
  end(keep = true): void {
    if (!this.#drawn) return;
    process.stderr.write(keep ? "\n" : "\r\x1b[2K");
    this.#drawn = false;
  }

  #line(done: number, total: number | undefined, more: string, now: number): string {
    const { perSecond, leftMs } = this.#pace.at(now, done, total);
    const { amount, rate: rateOf = amount } = this.#unit;
    const rate = perSecond > 0 ? ` ${rateOf(perSecond)}/s` : "";
    if (total === undefined) return `${this.#title} ${amount(done)}${rate}${more}`;
    const share = total === 0 ? 1 : Math.min(1, done / total);
    const left = leftMs === undefined ? "" : ` ${spanText(leftMs)} left`;
    return `${this.#title} ${bar(share)} ${Math.floor(share * 100)} % ${amount(done)} of ${amount(total)}${more}${rate}${left}`;
  }
}

export function bar(share: number, width = 24): string {
  const full = Math.round(share * width);
  return `[${"█".repeat(full)}${"·".repeat(width - full)}]`;
}
