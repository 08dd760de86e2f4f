import { givenTenant, type Labels, labels, problemsOf } from "@berth/protocol";
import { UsageError } from "./complaint.ts";

const unitsMs: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `500ms`, `30s`, `5m`, `2h`, `1d`; a bare number is seconds. */
export function durationMs(option: string, text: string): number {
  const [, amount, unit = "s"] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text) ?? [];
  const ms = Math.round(Number(amount) * (unitsMs[unit] ?? Number.NaN));
  if (!Number.isSafeInteger(ms) || ms <= 0)
    throw new UsageError(`${option}: ${text} is not a duration; write 500ms, 30s, 5m, 2h or 1d`);
  return ms;
}

export function wholeNumber(option: string, text: string, least = 1): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least)
    throw new UsageError(`${option}: ${text} is not a whole number of at least ${least}`);
  return value;
}

/** Each `KEY=VALUE`; a repeated key takes its last value. */
export function assignments(option: string, texts: readonly string[]): Record<string, string> {
  const pairs = texts.map((text) => {
    const at = text.indexOf("=");
    if (at <= 0) throw new UsageError(`${option}: ${text} is not NAME=VALUE`);
    return [text.slice(0, at), text.slice(at + 1)] as const;
  });
  return Object.fromEntries(pairs);
}

/** `NAME=VALUE,NAME=VALUE`. */
export function labelsOf(option: string, texts: readonly string[]): Labels {
  const parsed = labels.safeParse(
    assignments(
      option,
      texts.flatMap((text) => text.split(",")),
    ),
  );
  if (!parsed.success) throw new UsageError(`${option}: ${problemsOf(parsed.error).join("; ")}`);
  return parsed.data;
}

export function oneOf<T extends string>(option: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === text);
  if (found === undefined) throw new UsageError(`${option}: ${text} is not one of ${allowed.join(", ")}`);
  return found;
}

export function tenantName(text: string): string {
  const parsed = givenTenant.safeParse(text);
  if (!parsed.success) throw new UsageError(`${text}: ${parsed.error.issues[0]?.message}`);
  return parsed.data;
}
