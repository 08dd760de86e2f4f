/** The bounds and the meaning are those of init's glob.c, so that a pattern finds the same files by either way. */
const maxAlternatives = 512;
const maxNames = 64;
const maxPatternBytes = 4095;

type Segment =
  | { readonly kind: "any-depth" }
  | { readonly kind: "name"; readonly matches: (name: string) => boolean };

interface Alternative {
  readonly segments: readonly Segment[];
  readonly directoriesOnly: boolean;
}

/** A glob that cannot be understood. */
export class GlobError extends Error {}

export interface Glob {
  matches(path: string, isDirectory: boolean): boolean;
  /** How far below its base anything can match. */
  readonly depth: number;
}

/**
 * Compiles a glob on paths: `*` and `?` within a name, `[a-z]`, `[!a-z]`, `{a,b}`, `\\` before a character to take it as it is, `**`
 * for any number of directories, a slash at the end for directories only. A leading dot is matched only by a dot, unless
 * `dot`. Matching takes time in proportion to name times pattern: a tenant's pattern cannot hang the worker.
 */
export function compileGlob(pattern: string, dot: boolean): Glob {
  if (Buffer.byteLength(pattern) > maxPatternBytes)
    throw new GlobError(`it is longer than ${maxPatternBytes} bytes`);
  const alternatives = expandBraces(pattern).map((one) => compileAlternative(one, dot));
  const depths = alternatives.map(({ segments }) =>
    segments.some(({ kind }) => kind === "any-depth") ? Number.POSITIVE_INFINITY : segments.length,
  );
  return {
    depth: Math.max(...depths),
    matches: (path, isDirectory) => {
      const names = path.split("/");
      return alternatives.some(
        ({ segments, directoriesOnly }) =>
          (isDirectory || !directoriesOnly) && matchSegments(segments, names, dot),
      );
    },
  };
}

function expandBraces(pattern: string): string[] {
  const done: string[] = [];
  const todo = [pattern];
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const group = findBraces(next);
    if (!group) done.push(next);
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

function compileAlternative(pattern: string, dot: boolean): Alternative {
  if (pattern === "") throw new GlobError("it is empty");
  if (pattern.startsWith("/")) throw new GlobError("it is absolute");
  const names = pattern.split("/").filter((text) => text !== "" && text !== ".");
  if (names.includes("..")) throw new GlobError('it has a ".." segment');
  // What is below a directory does not include the directory.
  if (names.at(-1) === "**") names.push("*");
  if (names.length === 0 || names.length > maxNames)
    throw new GlobError(`it has no name, or more than ${maxNames}`);
  return {
    directoriesOnly: pattern.endsWith("/"),
    segments: names.map((text): Segment => {
      if (text === "**") return { kind: "any-depth" };
      const matches = compileName(text);
      const dotted = dot || text.startsWith(".") || text.startsWith("\\.");
      return { kind: "name", matches: (name) => (dotted || !name.startsWith(".")) && matches(name) };
    }),
  };
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
      } else if (segment.matches(name)) next.add(place + 1);
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
    else {
      const set = character === "[" ? compileSet(characters, at) : undefined;
      if (set) {
        pieces.push(set.matches);
        at = set.end;
        continue;
      }
      if (character === "\\" && at + 1 < characters.length) at++;
      const literal = characters[at];
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

/** Undefined when it is never closed, and the bracket is an ordinary character. */
function compileSet(
  characters: readonly string[],
  from: number,
): { matches: (character: string) => boolean; end: number } | undefined {
  const negated = characters[from + 1] === "!" || characters[from + 1] === "^";
  const first = from + (negated ? 2 : 1);
  const ranges: [string, string][] = [];
  let at = first;
  // A ] right after the opening stands for itself.
  for (; characters[at] !== "]" || at === first; at++) {
    if (characters[at] === "\\" && at + 1 < characters.length) at++;
    const low = characters[at];
    if (low === undefined) return undefined;
    let high = low;
    if (characters[at + 1] === "-" && characters[at + 2] !== "]" && characters[at + 2] !== undefined) {
      at += characters[at + 2] === "\\" && characters[at + 3] !== undefined ? 3 : 2;
      high = characters[at] as string;
    }
    ranges.push([low, high]);
  }
  const end = at;
  return { matches: (one) => ranges.some(([low, high]) => one >= low && one <= high) !== negated, end };
}
