import { Fault, problemsOf } from "@berth/protocol";

/** A value in a message: enough of it to recognise it. */
const shownLength = 80;

interface Schema<T> {
  safeParse(
    value: unknown,
  ):
    | { readonly success: true; readonly data: T }
    | { readonly success: false; readonly error: Parameters<typeof problemsOf>[0] };
}

/** The caller's value, or a fault with what is wrong with it. Callers may use plain JavaScript, so any type can come. */
export function checked<T>(schema: Schema<T>, value: unknown, what: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw invalid(what, value, problemsOf(parsed.error).join("; "));
}

export function invalid(what: string, value: unknown, problem: string): Fault<"invalid-argument"> {
  return new Fault("invalid-argument", { argument: `${what} ${shown(value)}`, problem });
}

function shown(value: unknown): string {
  if (typeof value === "number" || value === null || value === undefined) return String(value);
  if (typeof value !== "string") return `(a value of type ${typeof value})`;
  return JSON.stringify(value.length > shownLength ? `${value.slice(0, shownLength)}…` : value);
}
