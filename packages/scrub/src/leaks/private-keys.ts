import type { Span } from "../spans.ts";

const beginning = /-----BEGIN (?:[A-Z]+ ){0,3}PRIVATE KEY-----/g;
const ending = /-----END (?:[A-Z]+ ){0,3}PRIVATE KEY-----/g;
/** Characters between the first line and the last. */
const longestBody = 8_192;

/**
 * Finds private keys, from their first line to their last, or to the end of the text. Reads each byte once, even if there are many first
 * lines.
 */
export function privateKeysIn(text: string): Span[] {
  if (!text.includes("-----BEGIN ")) return [];
  const found: Span[] = [];
  const ends = [...text.matchAll(ending)];
  let next = 0;
  for (const { 0: line, index: start } of text.matchAll(beginning)) {
    if (start < (found.at(-1)?.end ?? 0)) continue;
    const body = start + line.length;
    while (next < ends.length && (ends[next]?.index ?? 0) < body) next++;
    const last = ends[next];
    const to = last?.index ?? text.length;
    if (to - body <= longestBody) found.push({ start, end: to + (last?.[0].length ?? 0) });
  }
  return found;
}
