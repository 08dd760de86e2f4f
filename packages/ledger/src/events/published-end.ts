/** A job's end as results and inboxes have it. */
export interface PublishedEnd {
  readonly jobId: string;
  /** The key of the sandbox. */
  readonly key: string;
  /** The result as JSON, or an excerpt of it. */
  readonly text: string;
  readonly isExcerpt: boolean;
}

export function parseEnd(fields: readonly Buffer[]): PublishedEnd {
  const named = new Map<string, string>();
  for (let index = 0; index + 1 < fields.length; index += 2)
    named.set(String(fields[index]), String(fields[index + 1]));
  const excerpt = named.get("excerpt");
  return {
    jobId: named.get("job") ?? "",
    key: named.get("key") ?? "",
    text: excerpt ?? named.get("d") ?? "{}",
    isExcerpt: excerpt !== undefined,
  };
}
