import { Fault, type GrepMatch } from "@berth/protocol";
import type { GrepListing, GrepOptions } from "../port.ts";
import type { ExecHost } from "./exec-host.ts";
import { badPattern, compare, compileGlobs, cutOff, defaultMaxItems } from "./file-walks.ts";
import { scriptFailure, scriptPath } from "./script-failure.ts";
import { Enough, runScript } from "./script-run.ts";
import { TokenReader } from "./walk-reader.ts";
import { grepBatchScript, grepScript, regularFilesScript } from "./walk-scripts.ts";

const defaultMaxLineBytes = 512;
/** Room for the line's number and a colon before its text. */
const numberBytes = 21;
/** Files looked into before it gives up and says that there is more. */
const maxFiles = 200_000;

interface Candidates {
  /** Where the search physically is, beneath the workspace. */
  readonly place: string;
  readonly isFile: boolean;
  readonly names: readonly string[];
  readonly skipped: number;
  readonly truncated: boolean;
}

/**
 * With the image's own grep, in two steps: which files there are, then what they hold. Files with a line feed in their name cannot
 * be named to it, and are counted as skipped; of binary files only those are that contain the pattern.
 */
export async function grepFiles(host: ExecHost, pattern: string, options: GrepOptions): Promise<GrepListing> {
  if (/[\0\n]/.test(pattern)) throw badPattern("it has a line feed or a NUL byte");
  const { maxItems = defaultMaxItems, maxLineBytes = defaultMaxLineBytes, path = "", signal } = options;
  const base = scriptPath(path);
  const found = await candidates(host, path, options);
  const { names, place, isFile } = found;
  if (names.length === 0)
    return { items: [], truncated: found.truncated, filesSearched: 0, filesSkipped: found.skipped };

  const named = new Set(names);
  const shown = (name: string) => {
    if (isFile) return base.whole;
    return base.whole === "" ? name.slice(2) : `${base.whole}/${name.slice(2)}`;
  };
  let items: GrepMatch[] = [];
  let binary = 0;
  const begin = () => {
    items = [];
    binary = 0;
    let current: string | undefined;
    return new TokenReader((token) => {
      if (current !== undefined) {
        for (const match of readLines(token, shown(current), maxLineBytes)) {
          if (items.length >= maxItems) throw new Enough();
          items.push(match);
        }
        current = undefined;
        return;
      }
      const text = token.toString("utf8");
      const name = text.slice(text.indexOf(" ") + 1);
      if (!named.has(name))
        throw new Fault("file-operation-failed", {
          operation: "grep",
          code: "io",
          detail: "an unasked name",
        });
      if (text.startsWith("binary ")) binary++;
      else current = name;
    });
  };
  let reader = begin();
  const how = `-${options.regex ? "E" : "F"}${options.ignoreCase ? "i" : ""}`;
  const answer = await runScript(host, {
    operation: "grep",
    script: grepScript,
    args: [place, grepBatchScript, how, String(maxItems + 1), String(maxLineBytes + numberBytes), pattern],
    stdin: Buffer.from(names.map((name) => `${name}\0`).join("")),
    signal,
    repeat: () => {
      reader = begin();
    },
    isWhole: () => reader.ended,
    onBody: (bytes) => reader.push(bytes),
  });
  if (answer.kind === "no") {
    if (answer.code === "bad-pattern") throw badPattern("it is not a regular expression");
    throw scriptFailure("grep", path, answer);
  }
  if (!answer.enough && !reader.ended) throw cutOff("grep");
  return {
    items: items.sort((a, b) => compare(a.path, b.path) || a.line - b.line),
    truncated: answer.enough || found.truncated,
    filesSearched: names.length - binary,
    filesSkipped: binary + found.skipped,
  };
}

function* readLines(token: Buffer, path: string, maxLineBytes: number): Generator<GrepMatch> {
  for (let at = 0; at < token.length; ) {
    const feed = token.indexOf(0x0a, at);
    const end = feed < 0 ? token.length : feed;
    const colon = token.indexOf(0x3a, at);
    const line = Number(token.toString("latin1", at, Math.min(colon, at + numberBytes)));
    if (colon >= at && colon < end && Number.isSafeInteger(line)) {
      const cut = end - colon - 1 > maxLineBytes;
      const shownEnd = cut ? characterEnd(token, colon + 1, colon + 1 + maxLineBytes) : end;
      yield { path, line, text: token.toString("utf8", colon + 1, shownEnd), cut };
    }
    at = end + 1;
  }
}

/** A cut does not leave half a character. */
function characterEnd(bytes: Buffer, from: number, most: number): number {
  let end = most;
  while (end > from && most - end < 4 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return end;
}

async function candidates(host: ExecHost, path: string, options: GrepOptions): Promise<Candidates> {
  const { parent, name } = scriptPath(path);
  const include = (options.include ?? []).map((pattern) => ({
    onPath: pattern.includes("/"),
    glob: compileGlobs([pattern], true)[0],
  }));
  const wanted = (file: string) => {
    if (include.length === 0) return true;
    const below = file.slice(2);
    return include.some(({ onPath, glob }) =>
      glob?.matches(onPath ? below : below.slice(below.lastIndexOf("/") + 1), false),
    );
  };
  let kind: string | undefined;
  let place: string | undefined;
  let names: string[] = [];
  let skipped = 0;
  const begin = () => {
    kind = undefined;
    place = undefined;
    names = [];
    skipped = 0;
    return new TokenReader((token) => {
      const text = token.toString("utf8");
      if (kind === undefined) {
        kind = text;
        return;
      }
      if (place === undefined) {
        place = text.replace(/^\//, "");
        return;
      }
      // A file that was named is searched whatever the includes say.
      if (!text.startsWith("./") || (kind === "directory" && !wanted(text))) return;
      if (names.length >= maxFiles) throw new Enough();
      // Bytes that are not UTF-8 do not survive the way here and back.
      if (text.includes("\n") || text.includes("\ufffd")) skipped++;
      else names.push(text);
    });
  };
  let reader = begin();
  const answer = await runScript(host, {
    operation: "grep",
    script: regularFilesScript,
    args: [parent, name],
    signal: options.signal,
    repeat: () => {
      reader = begin();
    },
    isWhole: () => reader.ended,
    onBody: (bytes) => reader.push(bytes),
  });
  if (answer.kind === "no") throw scriptFailure("grep", path, answer);
  if (!answer.enough && !reader.ended) throw cutOff("grep");
  return { place: place ?? "", isFile: kind === "file", names, skipped, truncated: answer.enough };
}
