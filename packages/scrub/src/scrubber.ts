import { formsOf, shortestSecretBytes } from "./forms.ts";
import { Matcher } from "./matcher.ts";
import { maskSpans } from "./spans.ts";

/** Masks all forms of some values, in bytes and in texts. */
export class Scrubber {
  readonly matcher: Matcher | undefined;
  /** The longest form: so many bytes before and behind a range decide what is masked in it. */
  readonly contextBytes: number;
  /** Of all forms: its tables have as many states at most. */
  readonly patternBytes: number;

  /** Throws on values whose forms have more than `mostPatternBytes`. */
  constructor(values: Iterable<Buffer>) {
    const forms = [...values].flatMap(formsOf);
    this.matcher = forms.length === 0 ? undefined : new Matcher(forms);
    this.patternBytes = forms.reduce((sum, { length }) => sum + length, 0);
    this.contextBytes = forms.reduce((most, { length }) => Math.max(most, length), 1) - 1;
  }

  /** In place. Gives back how many places were masked. */
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

  /** A text with pieces that were cut off somewhere: eight bytes of a secret's beginning are masked too. */
  maskPieces(text: string): string {
    if (this.matcher === undefined) return text;
    const bytes = Buffer.from(text);
    const spans = this.matcher.findBeginnings(bytes, shortestSecretBytes);
    if (spans.length === 0) return text;
    maskSpans(bytes, spans);
    return bytes.toString();
  }
}
