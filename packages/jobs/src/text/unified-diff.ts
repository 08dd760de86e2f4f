import { Refusal } from "../run-context.ts";

/** A diff's change of one file. A side that is /dev/null has no path. */
export interface FilePatch {
  readonly oldPath: string | undefined;
  readonly newPath: string | undefined;
  readonly mode: number | undefined;
  readonly hunks: readonly Hunk[];
}

export interface Hunk {
  /** `@@ -1,2 +1,3 @@` */
  readonly header: string;
  readonly oldStart: number;
  /** Lines with their line ends; only a file's last line may lack one. One character per byte. */
  readonly lines: readonly HunkLine[];
}

export interface HunkLine {
  readonly sign: " " | "-" | "+";
  readonly text: string;
}

/** A section of the diff while it is parsed. */
interface Section {
  oldPath: string | undefined;
  newPath: string | undefined;
  named: boolean;
  renamed: { from?: string; to?: string };
  mode: number | undefined;
  hunks: Hunk[];
}

const hunkHeader = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@/;

/** Parses a unified diff, git's extensions included. Refuses what cannot be applied, and names its line. */
export function parseDiff(diff: string): FilePatch[] {
  // One character per byte: content that is not UTF-8 passes through unchanged.
  const lines = Buffer.from(diff).toString("latin1").split("\n");
  if (lines.at(-1) === "") lines.pop();
  const sections: Section[] = [];
  let section: Section | undefined;
  let at = 0;
  const begin = () => {
    section = {
      oldPath: undefined,
      newPath: undefined,
      named: false,
      renamed: {},
      mode: undefined,
      hunks: [],
    };
    sections.push(section);
    return section;
  };
  while (at < lines.length) {
    const line = withoutReturn(lines[at] ?? "");
    const next = withoutReturn(lines[at + 1] ?? "");
    if (line.startsWith("diff --git ")) {
      const path = gitPath(line.slice("diff --git ".length));
      const begun = begin();
      begun.oldPath = path;
      begun.newPath = path;
    } else if (line.startsWith("--- ") && next.startsWith("+++ ")) {
      const target: Section = section && !section.named && section.hunks.length === 0 ? section : begin();
      Object.assign(target, headerPaths(line.slice(4), next.slice(4)), { named: true });
      at++;
    } else if (line.startsWith("@@ ")) {
      if (!section?.named) throw bad(at, "a hunk before any --- and +++ lines");
      const { hunk, end } = readHunk(lines, at);
      section.hunks.push(hunk);
      at = end;
      if (goesOn(lines, at))
        throw bad(at, `the hunk ${hunk.header} has more lines than its header announces`);
      continue;
    } else if (section?.hunks.length === 0) {
      readExtended(section, line, at);
    }
    at++;
  }
  const patches = sections.flatMap(finished);
  if (patches.length === 0)
    throw new Refusal("bad-patch", "the diff changes no file: it has no --- and +++ lines");
  return patches;
}

function readHunk(lines: readonly string[], start: number): { hunk: Hunk; end: number } {
  const match = hunkHeader.exec(lines[start] ?? "");
  if (!match) throw bad(start, `not a hunk header: ${lines[start]}`);
  const [header, oldStart, oldCount = "1", , newCount = "1"] = match;
  let oldLeft = Number(oldCount);
  let newLeft = Number(newCount);
  const body: HunkLine[] = [];
  let at = start + 1;
  while (oldLeft > 0 || newLeft > 0) {
    const line = lines[at];
    if (line === undefined) throw bad(start, `the hunk ${header} has fewer lines than its header announces`);
    // Editors strip the space of an empty context line.
    const sign = line === "" || line === "\r" ? " " : line[0];
    if (sign === "\\") {
      endWithoutNewline(body);
      at++;
      continue;
    }
    if (sign !== " " && sign !== "-" && sign !== "+") {
      throw bad(at, `the hunk ${header} has fewer lines than its header announces`);
    }
    if (sign !== "+" && --oldLeft < 0)
      throw bad(at, `the hunk ${header} has more old lines than its header announces`);
    if (sign !== "-" && --newLeft < 0)
      throw bad(at, `the hunk ${header} has more new lines than its header announces`);
    body.push({ sign, text: `${line === "" || line === "\r" ? line : line.slice(1)}\n` });
    at++;
  }
  if (lines[at]?.startsWith("\\")) {
    endWithoutNewline(body);
    at++;
  }
  return { hunk: { header, oldStart: Number(oldStart), lines: body }, end: at };
}

/** Whether the line looks like one more of the hunk before it. A lone `-- ` begins a mail signature. */
function goesOn(lines: readonly string[], at: number): boolean {
  const line = withoutReturn(lines[at] ?? "");
  if (line === "-- " || (line.startsWith("--- ") && lines[at + 1]?.startsWith("+++ "))) return false;
  return /^[ +-]/.test(line);
}

/** `\ No newline at end of file` refers to the line before it. */
function endWithoutNewline(body: HunkLine[]): void {
  const last = body.pop();
  if (last) body.push({ ...last, text: last.text.replace(/\r?\n$/, (end) => end.slice(0, -1)) });
}

function readExtended(section: Section, line: string, at: number): void {
  const [, newMode] = /^new (?:file )?mode (\d{6})$/.exec(line) ?? [];
  if (newMode !== undefined) {
    if (!newMode.startsWith("100")) throw bad(at, `only regular files can be patched, not mode ${newMode}`);
    section.mode = Number.parseInt(newMode.slice(3), 8);
  }
  if (line.startsWith("new file mode")) section.oldPath = undefined;
  if (line.startsWith("deleted file mode")) section.newPath = undefined;
  if (line.startsWith("rename from ")) section.renamed.from = decodedPath(line.slice(12));
  if (line.startsWith("rename to ")) section.renamed.to = decodedPath(line.slice(10));
  if (line.startsWith("copy from "))
    throw bad(at, "copies are not supported; copy the file first, then patch it");
  if (line.startsWith("GIT binary patch") || line.startsWith("Binary files ")) {
    throw bad(at, "binary changes are not supported; write the file instead");
  }
}

function finished(section: Section): FilePatch[] {
  const { from, to } = section.renamed;
  const { mode, hunks } = section;
  if (from !== undefined && to !== undefined) return [{ oldPath: from, newPath: to, mode, hunks }];
  const { oldPath, newPath } = section;
  if (!section.named && mode === undefined && oldPath !== undefined && newPath !== undefined) return [];
  if (oldPath === undefined && newPath === undefined) {
    throw new Refusal("bad-patch", "the diff has a file that is /dev/null on both sides");
  }
  // Without rename lines, two names mean a backup copy (x.orig): the new name is the file's.
  return [{ oldPath: oldPath === undefined ? undefined : (newPath ?? oldPath), newPath, mode, hunks }];
}

/** git's `a/` and `b/`, if both sides have them. */
function headerPaths(oldText: string, newText: string): Pick<Section, "oldPath" | "newPath"> {
  const oldPath = decodedPath(oldText);
  const newPath = decodedPath(newText);
  const prefixed = (path: string, prefix: string) => path === "/dev/null" || path.startsWith(prefix);
  const strip = prefixed(oldPath, "a/") && prefixed(newPath, "b/") ? 2 : 0;
  const named = (path: string) => (path === "/dev/null" ? undefined : path.slice(strip));
  return { oldPath: named(oldPath), newPath: named(newPath) };
}

/** The name in `a/x b/x`; undefined if the two differ, since other lines then name them. */
function gitPath(text: string): string | undefined {
  const [, first, second] = /^("(?:[^"\\]|\\.)*") ("(?:[^"\\]|\\.)*")$/.exec(text) ?? [
    text,
    text.slice(0, (text.length - 1) / 2),
    text.slice((text.length + 1) / 2),
  ];
  const { oldPath, newPath } = headerPaths(first ?? "", second ?? "");
  return oldPath === newPath ? oldPath : undefined;
}

const escapes: Record<string, string> = { n: "\n", t: "\t", r: "\r", a: "\x07", b: "\b", f: "\f", v: "\v" };

/** A name as diff writes it: up to a tab and a time, or quoted with escapes. */
function decodedPath(text: string): string {
  const quoted = /^"((?:[^"\\]|\\.)*)"/.exec(text)?.[1];
  const bytes =
    quoted === undefined
      ? (text.split("\t")[0] ?? "").trimEnd()
      : quoted.replace(/\\([0-7]{3}|.)/g, (_, escaped: string) =>
          escaped.length === 3
            ? String.fromCharCode(Number.parseInt(escaped, 8) & 0xff)
            : (escapes[escaped] ?? escaped),
        );
  return Buffer.from(bytes, "latin1").toString("utf8");
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

function bad(index: number, problem: string): Refusal {
  return new Refusal(
    "bad-patch",
    `line ${index + 1} of the diff: ${Buffer.from(problem, "latin1").toString("utf8")}`,
  );
}
