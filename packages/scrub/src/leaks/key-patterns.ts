import { privateKeysIn } from "./private-keys.ts";

/** Patterns of keys and tokens, by issuer. The more special come first: `sk-ant-` also begins with `sk-`. */
const patterns = {
  anthropic: /sk-ant-[A-Za-z0-9_-]{20,200}/,
  openai: /sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,200}/,
  github: /(?:gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_[A-Za-z0-9_]{36,251})/,
  google: /AIza[A-Za-z0-9_-]{35}/,
  slack: /(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,250}/,
  discord: /[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}/,
  telegram: /[0-9]{8,10}:[A-Za-z0-9_-]{35}/,
} as const;

export type LeakKind = keyof typeof patterns | "private-key";
const kinds = Object.keys(patterns) as (keyof typeof patterns)[];

/** Not within a longer word: `task-…` is no `sk-…`. */
const all = new RegExp(kinds.map((kind) => `((?<![A-Za-z0-9_])${patterns[kind].source})`).join("|"), "g");

export interface KeyFound {
  readonly kind: LeakKind;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** One character a byte. */
export function keysIn(text: string): KeyFound[] {
  const privateKeys = privateKeysIn(text).map(
    ({ start, end }): KeyFound => ({ kind: "private-key", start, end, text: text.slice(start, end) }),
  );
  const others = [...text.matchAll(all)].map((match): KeyFound => {
    const index = match.slice(1).findIndex((group) => group !== undefined);
    const { 0: found, index: start } = match;
    return { kind: kinds[index] as LeakKind, start, end: start + found.length, text: found };
  });
  const isWithin = (one: KeyFound) =>
    privateKeys.some(({ start, end }) => start < one.end && one.start < end);
  return [...privateKeys, ...others.filter((one) => !isWithin(one))].sort((a, b) => a.start - b.start);
}
