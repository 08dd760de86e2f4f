/** A pattern takes at most this many alternatives from its braces; `{a,b}` ten times over would be a thousand. */
const maxAlternatives = 256;

type Segment =
  | { readonly kind: "any-depth" }
  | { readonly kind: "name"; readonly matches: (name: string) => boolean; readonly dot: boolean };

/** A glob that cannot be understood. */
export class GlobError extends Error {}

/**
 * Compiles a glob on paths with `/`: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}`, `\` before a literal, and `**` for any depth as a whole
 * segment. A leading dot is matched only by a dot, unless `dot`. Matching takes time in proportion to name times pattern: a
 * tenant's pattern cannot hang the worker.
 */
export function compileGlob(
  pattern: string,
  dot: boolean,
): { matches(path: string): boolean; depth: number } {
  const alternatives = expandBraces(pattern).map((one) => compileSegments(one, dot));
  const depths = alternatives.map((segments) =>
    segments.some(({ kind }) => kind === "any-depth") ? Number.POSITIVE_INFINITY : segments.length,
  );
  return {
    depth: Math.max(...depths),
    matches: (path) => {
      const names = path.split("/");
      return alternatives.some((segments) => matchSegments(segments, names, dot));
    },
  };
}

function expandBraces(pattern: string): string[] {
  let done: string[] = [];
  const todo = [pattern];
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const group = findBraces(next);
    if (!group) done = [...done, next];
    else
      for (const choice of group.choices)
        todo.push(next.slice(0, group.from) + choice + next.slice(group.to));
    if (done.length + todo.length > maxAlternatives) {
      throw new GlobError(`its braces make more than ${maxAlternatives} alternatives`);
    }
  }
  return done;
}

/** The first group with a comma, its choices cut at the outer commas. */
function findBraces(pattern: string): { from: number; to: number; choices: string[] } | undefined {
  for (let from = pattern.indexOf("{"); from >= 0; from = pattern.indexOf("{", from + 1)) {
    if (pattern[from - 1] === "\\") continue;
    const choices: string[] = [];
    let depth = 0;
    let begin = from + 1;
    for (let at = from; at < pattern.length; at++) {
      const character = pattern[at];
      if (character === "\\") at++;
      else if (character === "{") depth++;
      else if (character === "," && depth === 1) {
        choices.push(pattern.slice(begin, at));
        begin = at + 1;
      } else if (character === "}" && --depth === 0) {
        choices.push(pattern.slice(begin, at));
        if (choices.length > 1) return { from, to: at + 1, choices };
        break;
      }
    }
  }
  return undefined;
}

function compileSegments(pattern: string, dot: boolean): Segment[] {
  return pattern
    .split("/")
    .filter((text) => text !== "" && text !== ".")
    .map((text): Segment => {
      if (text === "**") return { kind: "any-depth" };
      return {
        kind: "name",
        matches: compileName(text),
        dot: dot || text.startsWith(".") || text.startsWith("\\."),
      };
    });
}

/** The places in the pattern that the names so far can have led to. */
function matchSegments(segments: readonly Segment[], names: readonly string[], dot: boolean): boolean {
  let places = skipAnyDepth(new Set([0]), segments);
  for (const name of names) {
    const next = new Set<number>();
    for (const place of places) {
      const segment = segments[place];
      if (segment === undefined) continue;
      if (segment.kind === "any-depth") {
        if (dot || !name.startsWith(".")) next.add(place);
      } else if ((segment.dot || !name.startsWith(".")) && segment.matches(name)) next.add(place + 1);
    }
    places = skipAnyDepth(next, segments);
    if (places.size === 0) return false;
  }
  return places.has(segments.length);
}

function skipAnyDepth(places: Set<number>, segments: readonly Segment[]): Set<number> {
  // A set grows while it is walked, and what is added is walked too.
  for (const place of places) if (segments[place]?.kind === "any-depth") places.add(place + 1);
  return places;
}

type Piece = "any" | ((character: string) => boolean);

function compileName(text: string): (name: string) => boolean {
  const pieces: Piece[] = [];
  const characters = [...text];
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at] as string;
    if (character === "*") {
      if (pieces.at(-1) !== "any") pieces.push("any");
    } else if (character === "?") pieces.push(() => true);
    else if (character === "[") {
      const set = compileSet(characters, at);
      pieces.push(set.matches);
      at = set.end;
    } else {
      if (character === "\\") at++;
      const literal = characters[at] ?? "\\";
      pieces.push((one) => one === literal);
    }
  }
  return (name) => matchPieces(pieces, [...name]);
}

/** Going back only to the last `*` is enough, and keeps it from growing beyond name times pattern. */
function matchPieces(pieces: readonly Piece[], name: readonly string[]): boolean {
  let piece = 0;
  let at = 0;
  let star = -1;
  let starAt = 0;
  while (at < name.length) {
    const current = pieces[piece];
    if (current === "any") {
      star = piece++;
      starAt = at;
    } else if (current?.(name[at] as string)) {
      piece++;
      at++;
    } else if (star >= 0) {
      piece = star + 1;
      at = ++starAt;
    } else return false;
  }
  while (pieces[piece] === "any") piece++;
  return piece === pieces.length;
}

function compileSet(
  characters: readonly string[],
  from: number,
): { matches: (character: string) => boolean; end: number } {
  const negated = characters[from + 1] === "!" || characters[from + 1] === "^";
  const first = from + (negated ? 2 : 1);
  // A ] right after the opening stands for itself.
  const end = characters.indexOf("]", first + 1);
  if (end < 0) throw new GlobError("a [ is not closed");
  const ranges: [string, string][] = [];
  for (let at = first; at < end; at++) {
    const low = characters[at] as string;
    if (characters[at + 1] === "-" && at + 2 < end) {
      ranges.push([low, characters[at + 2] as string]);
      at += 2;
    } else ranges.push([low, low]);
  }
  return { matches: (one) => ranges.some(([low, high]) => one >= low && one <= high) !== negated, end };
}
