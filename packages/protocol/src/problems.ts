interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** More than anybody reads. A hostile value can have one problem for every few of its bytes. */
export const maxProblems = 100;
/** Some messages quote names of the value, which may be as long as the value is. */
const maxProblemLength = 500;

/** The first problems of a value that did not parse, each as `where: what` and once. `above` is where the value is. */
export function problemsOf(
  error: { readonly issues: readonly Issue[] },
  above: readonly PropertyKey[] = [],
): string[] {
  const problems = new Set<string>();
  for (const issue of error.issues) {
    const { message } = issue;
    const path = [...above, ...issue.path];
    const problem = path.length > 0 ? `${path.join(".")}: ${message}` : message;
    problems.add(problem.length > maxProblemLength ? `${problem.slice(0, maxProblemLength)}…` : problem);
    if (problems.size >= maxProblems) break;
  }
  return [...problems];
}
