/**
 * `*` matches any characters, `?` one. Takes time linear in pattern times text: a pattern may come from a tenant, and a regular expression
 * made from it could run for ever.
 */
export function matchesWildcard(pattern: string, text: string): boolean {
  let at = 0;
  let from = 0;
  let star: number | undefined;
  let resume = 0;
  while (from < text.length) {
    if (pattern[at] === "*") {
      star = at++;
      resume = from;
    } else if (at < pattern.length && (pattern[at] === "?" || pattern[at] === text[from])) {
      at++;
      from++;
    } else if (star !== undefined) {
      at = star + 1;
      from = ++resume;
    } else return false;
  }
  while (pattern[at] === "*") at++;
  return at === pattern.length;
}

/** For paths: `*` stays within a name, `**` matches any number of directories. A directory's pattern also matches everything beneath it. */
export function matchesPath(pattern: string, path: string): boolean {
  const names = namesOf(path);
  return startsWith(namesOf(pattern), names, (one, name) => matchesWildcard(one, name), "**");
}

/**
 * For a command's words: one pattern word per word, with stars as above. The pattern may be shorter: `git push` also matches
 * `git push origin`. `mayBeAny`: words that a shell replaces by others, so that they match each pattern word.
 */
export function matchesCommand(
  pattern: string,
  words: readonly string[],
  mayBeAny: (word: string) => boolean = () => false,
): boolean {
  const matches = (one: string, word: string) => matchesWildcard(one, word) || mayBeAny(word);
  return startsWith(wordsOf(pattern), words, matches, "**");
}

/** Whether the first items match the patterns. Each row holds the numbers of items that the patterns so far can cover. */
function startsWith(
  patterns: readonly string[],
  items: readonly string[],
  matches: (pattern: string, item: string) => boolean,
  any: string,
): boolean {
  let covered = new Set([0]);
  for (const pattern of patterns) {
    const next = new Set<number>();
    for (const count of covered) {
      if (pattern === any) for (let more = count; more <= items.length; more++) next.add(more);
      else if (count < items.length && matches(pattern, items[count] ?? "")) next.add(count + 1);
    }
    covered = next;
  }
  return covered.size > 0;
}

function namesOf(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}

export function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}
