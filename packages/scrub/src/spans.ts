/** From its first byte to behind its last. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** As long as what it hides, so that sizes, offsets and line numbers stay as they are. */
const maskByte = 0x2a;

/** Adds one that ends behind all others; joins those that overlap. */
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
