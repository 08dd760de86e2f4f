import { z } from "zod";

const sizes: Readonly<Record<string, number>> = { "": 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };
const times: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Parses bytes such as `512m`, `1.5g` or `1048576`; undefined if invalid. */
export function readSize(text: string): number | undefined {
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(text.trim()) ?? [];
  const bytes = Number(amount) * (sizes[unit.toLowerCase()] ?? Number.NaN);
  return Number.isFinite(bytes) ? Math.round(bytes) : undefined;
}

/** Parses milliseconds such as `500ms`, `30s`, `5m`, `2h` or `1d`. Without a unit only 0, which is the same in all of them. */
export function readTime(text: string): number | undefined {
  if (text.trim() === "0") return 0;
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/i.exec(text.trim()) ?? [];
  const ms = Number(amount) * (times[unit.toLowerCase()] ?? Number.NaN);
  return Number.isFinite(ms) ? Math.round(ms) : undefined;
}

type Amount = z.ZodType<number, number | string>;

/** Text that cannot be parsed stays text, and the number's own validation refuses it. */
function readBy(read: (text: string) => number | undefined, number: z.ZodNumber): Amount {
  const parse = (value: unknown) => (typeof value === "string" ? (read(value) ?? value) : value);
  return z.preprocess(parse, number) as unknown as Amount;
}

const notA = (sentence: string) => ({
  error: ({ code }: { readonly code: string }) => (code === "invalid_type" ? sentence : undefined),
});

/** A number of bytes, or a text such as `512m`. */
export function bytesField(narrow: (number: z.ZodNumber) => z.ZodNumber): Amount {
  const number = z.number(notA("a size is a number of bytes, or a text such as 512m or 1g")).int().min(0);
  return readBy(readSize, narrow(number));
}

/** A number of milliseconds, or a text such as `30s`. */
export function millisecondsField(narrow: (number: z.ZodNumber) => z.ZodNumber): Amount {
  const number = z.number(notA("a time is a number of milliseconds, or a text such as 30s or 5m")).int();
  return readBy(readTime, narrow(number.min(0)));
}

/** A count, also as text: environment variables and command lines are text. */
export function countField(narrow: (number: z.ZodNumber) => z.ZodNumber): Amount {
  const read = (text: string) => (/^\d+(?:\.\d+)?$/.test(text.trim()) ? Number(text) : undefined);
  return readBy(read, narrow(z.number(notA("it is a number")).min(0)));
}

/** At least that, or 0 for no cap. */
export function orNoCap(least: number): (number: z.ZodNumber) => z.ZodNumber {
  return (number) =>
    number.refine((value) => value === 0 || value >= least, {
      error: `at least ${least}, or 0 for no cap`,
    });
}
