interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly code?: string | undefined;
  readonly errors?: readonly (readonly Issue[])[];
}

/** Names that decide which form of a request is meant. */
const deciding = new Set<PropertyKey>(["kind", "direction"]);

/** Every problem of a value that did not parse, each as `where: what`. Of a choice of forms, those of the one that was meant. */
export function problemsOf(error: { readonly issues: readonly Issue[] }): string[] {
  return [...new Set(error.issues.flatMap((issue) => sentences(issue, [])))];
}

function sentences(issue: Issue, above: readonly PropertyKey[]): string[] {
  const path = [...above, ...issue.path];
  const forms = issue.code === "invalid_union" ? (issue.errors ?? []) : [];
  const meant = forms.toSorted((a, b) => distance(a) - distance(b))[0];
  if (meant && meant.length > 0) return meant.flatMap((inner) => sentences(inner, path));
  return [path.length > 0 ? `${path.join(".")}: ${issue.message}` : issue.message];
}

/** How far a value is from a form: another type or kind is another form, an unknown name probably so. */
function distance(issues: readonly Issue[]): number {
  return issues.reduce((sum, issue) => sum + weight(issue), 0);
}

function weight(issue: Issue): number {
  const name = issue.path.at(-1);
  // An object is not meant as a list, whatever is wrong with it.
  if (issue.code === "invalid_type" && name === undefined) return 10_000;
  if (issue.code === "invalid_value" && name !== undefined && deciding.has(name)) return 1_000;
  if (issue.code === "unrecognized_keys") return 10;
  if (issue.code === "invalid_union") return Math.min(...(issue.errors ?? []).map(distance));
  return 1;
}
