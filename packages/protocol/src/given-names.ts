import { z } from "zod";
import { canonicalName, isCanonicalName, isMappedName, nameProblem } from "./names.ts";

const named = ["tenant", "session", "agent"] as const;
type Named = (typeof named)[number];

const given = z.string().max(1_024).optional();

/** A job's names as the user gave them, where they differ from the ids. */
export const givenNames = z.strictObject({ tenant: given, session: given, agent: given } satisfies Record<
  Named,
  unknown
>);
export type GivenNames = { readonly [name in Named]?: string | undefined };

/**
 * Finds the given names in a caller's job: names that become other ids, and known names of ids. Drops a name that does not hash to its
 * id, so that no caller can rename another's id. Undefined: there is none.
 */
export function givenNamesIn(order: unknown): GivenNames | undefined {
  if (!isObject(order)) return undefined;
  const known = isObject(order.names) ? order.names : {};
  const found = named.flatMap((name) => {
    const given = order[name];
    const first = typeof given === "string" && isMappedName(given) ? known[name] : given;
    return typeof first === "string" && belongs(first, given) ? [[name, first.normalize("NFC")]] : [];
  });
  return found.length === 0 ? undefined : Object.fromEntries(found);
}

/** Whether `given` is the name itself, or the id that it maps to. */
function belongs(name: string, given: unknown): boolean {
  if (isCanonicalName(name) || nameProblem(name) !== undefined) return false;
  return name === given || canonicalName(name) === given;
}

/** The same order with its given names, and no others. */
export function withGivenNames<T>(order: T): T {
  if (!isObject(order)) return order;
  const { names: _, ...rest } = order;
  const names = givenNamesIn(order);
  return (names === undefined ? rest : { ...rest, names }) as T;
}

/** The names that lists show beside ids: `bob@example.com, agent:main:telegram:-100`. Empty if the ids are the names. */
export function givenNamesText(names: GivenNames | undefined): string {
  return named.flatMap((name) => names?.[name] ?? []).join(", ");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
