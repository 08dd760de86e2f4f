interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
  /** Names of unknown fields. */
  readonly keys?: readonly string[];
}

/** Maximum of reported problems: a hostile value can have one problem for every few bytes. */
export const maxProblems = 100;
/** Some messages quote names from the value, which may be very long. */
const maxProblemLength = 500;

/** How zod reports a missing field. */
const absent = /^Invalid input: expected .*, received undefined$/;

/** The first problems of an invalid value, each as `where: what` and once. `above` is the value's own path. */
export function problemsOf(
  error: { readonly issues: readonly Issue[] },
  above: readonly PropertyKey[] = [],
): string[] {
  const problems = new Set<string>();
  for (const issue of error.issues) {
    const message = issue.message.replace(absent, "it is missing") + camelCaseHint(issue.keys ?? []);
    const path = [...above, ...issue.path];
    const problem = path.length > 0 ? `${path.join(".")}: ${message}` : message;
    problems.add(problem.length > maxProblemLength ? `${problem.slice(0, maxProblemLength)}…` : problem);
    if (problems.size >= maxProblems) break;
  }
  return [...problems];
}

/** Suggests the camelCase name of a field that was written in snake_case, as in Python. */
function camelCaseHint(keys: readonly string[]): string {
  const meant = keys
    .filter((key) => /^[a-z]+(_[a-z]+)+$/.test(key))
    .map((key) => key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()));
  return meant.length === 0 ? "" : `: did you mean ${meant.join(", ")}?`;
}
