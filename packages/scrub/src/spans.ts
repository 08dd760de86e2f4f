/** A range of bytes: `start` is its first, `end` is behind its last. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** `*` for each byte, so that sizes, offsets and line numbers stay as they are. */
const maskByte = 0x2a;

/** Adds a span that ends behind all others, and joins it with those that it overlaps. */
export function addSpan(spans: Span[], start: number, end: number): void {
  let from = start;
  for (let last = spans.at(-1); last !== undefined && last.end > from; last = spans.at(-1)) {
    from = Math.min(from, last.start);
    spans.pop();
  }
  spans.push({ start: from, end });
}

/** A span may begin before the bytes or end behind them. */
export function maskSpans(bytes: Uint8Array, spans: readonly Span[]): void {
  const within = (at: number) => Math.min(Math.max(0, at), bytes.length);
  for (const { start, end } of spans) bytes.fill(maskByte, within(start), within(end));
}
