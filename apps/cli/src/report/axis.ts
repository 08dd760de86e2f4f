import { type Markup, markup } from "./markup.ts";

const [left, right] = [52, 16];

/** Size of one plot. Close to the displayed width, so that text has one size in all plots. */
export class Plot {
  readonly #width: number;
  readonly #height: number;
  readonly #top: number;
  readonly #bottom: number;

  /** `top` and `bottom` are the margins; the lower one holds the labels of the horizontal axis. */
  constructor(width: number, { height = 240, top = 12, bottom = 32 } = {}) {
    this.#width = width;
    this.#height = height;
    this.#top = top;
    this.#bottom = bottom;
  }

  /** Maps a share of the width or height, 0 to 1, to a coordinate. */
  x(share: number): number {
    return round(left + share * (this.#width - left - right));
  }

  y(share: number): number {
    return round(this.#height - this.#bottom - share * (this.#height - this.#top - this.#bottom));
  }

  drawn(title: string, ...content: readonly Markup[]): Markup {
    return markup`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${this.#width} ${this.#height}" role="img" aria-label="${title}">${content}</svg>`;
  }

  countAxis(most: number): Markup {
    const step = niceStep(most / 4);
    const counts = Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
    return this.valueAxis(counts.map((count) => ({ share: count / most, text: count.toLocaleString("en") })));
  }

  /** Horizontal grid lines, each with its value on the left. */
  valueAxis(ticks: readonly Tick[]): Markup {
    return markup`${ticks.map(({ share, text }) => {
      const y = this.y(share);
      return markup`<line class="grid" x1="${left}" x2="${this.x(1)}" y1="${y}" y2="${y}"/><text class="tick end" x="${left - 8}" y="${y + 4}">${text}</text>`;
    })}`;
  }

  spanAxis(ticks: readonly Tick[]): Markup {
    const labels = ticks.map(
      ({ share, text }) =>
        markup`<text class="tick ${share > 0.97 ? "end" : "mid"}" x="${this.x(share)}" y="${this.y(0) + 22}">${text}</text>`,
    );
    return markup`<line class="axis" x1="${left}" x2="${this.x(1)}" y1="${this.y(0)}" y2="${this.y(0)}"/>${labels}`;
  }
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** `51 ms`, `1.3 s`, `4.2 min`, `1.5 h`. */
export function fineSpan(ms: number): string {
  if (ms < 1_000) return `${ms < 10 ? round(ms) : Math.round(ms)} ms`;
  if (ms < 60_000) return `${round(ms / 1_000)} s`;
  return ms < 3_600_000 ? `${round(ms / 60_000)} min` : `${round(ms / 3_600_000)} h`;
}

export interface Tick {
  readonly share: number;
  readonly text: string;
}

/** Even steps from 0. */
export function spanTicks(mostMs: number): Tick[] {
  const unitMs = mostMs > 7_200_000 ? 3_600_000 : mostMs > 120_000 ? 60_000 : 1_000;
  const step = Math.max(niceStep(mostMs / unitMs / 6), unitMs === 1_000 ? 0.1 : 1) * unitMs;
  const count = Math.floor(mostMs / step) + 1;
  return Array.from({ length: count }, (_, index) => ({
    share: (index * step) / mostMs,
    text: index === 0 ? "0" : evenSpan(index * step, unitMs),
  }));
}

const marksMs = [0.1, 1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 360_000_000];

/** Round durations between the two, on a logarithmic axis. */
export function roundTicks(fromMs: number, toMs: number): Tick[] {
  const span = Math.log(toMs / fromMs);
  return marksMs
    .filter((ms) => ms >= fromMs && ms <= toMs)
    .map((ms) => ({ share: Math.log(ms / fromMs) / span, text: fineSpan(ms) }));
}

function evenSpan(ms: number, unitMs: number): string {
  const unit = unitMs === 3_600_000 ? "h" : unitMs === 60_000 ? "min" : "s";
  return `${Math.round((ms / unitMs) * 10) / 10} ${unit}`;
}

function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  const factor = [1, 2, 5, 10].find((one) => one * power >= least) ?? 10;
  return Math.max(factor * power, least >= 1 || power >= 1 ? 1 : factor * power);
}
