import type { z } from "zod";

/** Exit code of an invalid configuration, from sysexits.h. */
export const exitBadConfig = 78;

/** Returns the values, or every problem at once. An empty variable counts as absent: Compose passes an unset variable as an empty one. */
export function readEnvironment<S extends z.ZodType>(
  schema: S,
  variables: Readonly<Record<string, unknown>>,
): { config: z.infer<S> } | { problems: string[] } {
  const set = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ""));
  const parsed = schema.safeParse(set);
  if (parsed.success) return { config: parsed.data };
  return { problems: parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`) };
}

/** The message that a program prints before it exits with `exitBadConfig`. */
export function configComplaint(program: string, problems: readonly string[]): string {
  return `${program}: the configuration cannot be used:\n${problems.map((one) => `  ${one}\n`).join("")}`;
}
