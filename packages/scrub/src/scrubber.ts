import { formsOf, shortestSecretBytes } from "./forms.ts";
import { type Work, whole } from "./in-slices.ts";
import { Matcher } from "./matcher.ts";
import { maskSpans } from "./spans.ts";

/** Masks all forms of some values, in bytes and in texts. */
export class Scrubber {
  readonly matcher: Matcher | undefined;
  /** Length of the longest form. So many bytes before and behind a range decide which of its bytes are masked. */
  readonly contextBytes: number;
  /** Bytes of all forms; the tables have at most as many states. */
  readonly patternBytes: number;

  /** Throws on values whose forms have more than `mostPatternBytes`. */
  constructor(values: Iterable<Buffer>, made: Made = whole(making(values))) {
    const { forms, matcher } = made;
    this.matcher = matcher;
    this.patternBytes = forms.reduce((sum, { length }) => sum + length, 0);
    this.contextBytes = forms.reduce((most, { length }) => Math.max(most, length), 1) - 1;
  }

  /** The same, in parts: with a thousand values it takes a second. */
  static *building(values: Iterable<Buffer>): Work<Scrubber> {
    return new Scrubber([], yield* making(values));
  }

  /** Masks in place. Returns how many places were masked. */
  maskBytes(bytes: Uint8Array): number {
    const spans = this.matcher?.find(bytes).spans ?? [];
    maskSpans(bytes, spans);
    return spans.length;
  }

  maskText(text: string): string {
    if (this.matcher === undefined) return text;
    const bytes = Buffer.from(text);
    return this.maskBytes(bytes) === 0 ? text : bytes.toString();
  }

  /** For a text that may be cut off: also masks the beginning of a secret from eight bytes on. */
  maskPieces(text: string): string {
    if (this.matcher === undefined) return text;
    const bytes = Buffer.from(text);
    const spans = this.matcher.findBeginnings(bytes, shortestSecretBytes);
    if (spans.length === 0) return text;
    maskSpans(bytes, spans);
    return bytes.toString();
  }
}

interface Made {
  readonly forms: readonly Buffer[];
  readonly matcher: Matcher | undefined;
}

function* making(values: Iterable<Buffer>): Work<Made> {
  const forms: Buffer[] = [];
  for (const value of values) {
    yield;
    forms.push(...formsOf(value));
  }
  return { forms, matcher: forms.length === 0 ? undefined : yield* Matcher.building(forms) };
}
