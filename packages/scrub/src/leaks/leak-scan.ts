import { createHash } from "node:crypto";
import type { Span } from "../spans.ts";
import { type KeyFound, keysIn, type LeakKind } from "./key-patterns.ts";

/** A text that looks like a key. Does not contain it. */
export interface Leak extends Span {
  readonly kind: LeakKind;
  readonly encoding: "plain" | "base64" | "hex" | "url";
  /** The first 12 digits of the key's SHA-256: equal keys have equal fingerprints. */
  readonly fingerprint: string;
}

const runs = {
  hex: /(?:[0-9a-f]{2}|[0-9A-F]{2}){16,}/g,
  base64: /[A-Za-z0-9+/_-]{24,}={0,2}/g,
  url: /(?:[A-Za-z0-9_.~!*'()+-]|%[0-9A-Fa-f]{2}){16,}/g,
} as const;

/** Finds keys in a text of one character a byte: plain, and in base64, hexadecimal and URL encoding. */
export function leaksIn(text: string): Leak[] {
  const plain = keysIn(text).map((key) => leakOf("plain", key, key));
  const taken = (span: Span) => plain.some(({ start, end }) => span.start < end && start < span.end);
  const encoded = [...inHex(text), ...inBase64(text), ...inUrl(text)].filter((leak) => !taken(leak));
  return [...plain, ...encoded].sort((a, b) => a.start - b.start);
}

function leakOf(encoding: Leak["encoding"], { kind, text }: KeyFound, { start, end }: Span): Leak {
  const fingerprint = createHash("sha256").update(text, "latin1").digest("hex").slice(0, 12);
  return { kind, encoding, fingerprint, start, end };
}

function inHex(text: string): Leak[] {
  return [...text.matchAll(runs.hex)].flatMap(({ 0: run, index }) =>
    [0, 1].flatMap((offset) =>
      keysIn(Buffer.from(run.slice(offset), "hex").toString("latin1")).map((key) => {
        const start = index + offset + 2 * key.start;
        return leakOf("hex", key, { start, end: index + offset + 2 * key.end });
      }),
    ),
  );
}

/** Decodes from each of the four places where a group of four characters may begin. */
function inBase64(text: string): Leak[] {
  return [...text.matchAll(runs.base64)].flatMap(({ 0: run, index }) =>
    [0, 1, 2, 3].flatMap((offset) =>
      keysIn(Buffer.from(run.slice(offset), "base64").toString("latin1")).map((key) => {
        const start = index + offset + Math.floor((key.start * 8) / 6);
        return leakOf("base64", key, { start, end: index + offset + Math.ceil((key.end * 8) / 6) });
      }),
    ),
  );
}

function inUrl(text: string): Leak[] {
  return [...text.matchAll(runs.url)].flatMap(({ 0: run, index }) => {
    if (!run.includes("%")) return [];
    const places: number[] = [];
    const decoded = run.replaceAll(/%(..)|[^%]/g, (code, digits: string | undefined, at: number) => {
      places.push(index + at);
      return digits === undefined ? code : String.fromCharCode(Number.parseInt(digits, 16));
    });
    places.push(index + run.length);
    return keysIn(decoded)
      .filter((key) => text.slice(places[key.start], places[key.end]).includes("%"))
      .map((key) =>
        leakOf("url", key, { start: places[key.start] as number, end: places[key.end] as number }),
      );
  });
}
