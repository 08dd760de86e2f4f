import { FileRefusal, type ValueOf } from "@berth/protocol";
import { readWhole } from "../files/read-whole.ts";
import { problemText, Refusal, type RequestOf, type RunContext } from "../run-context.ts";
import { findBytes } from "../text/byte-search.ts";

/** The search blocks the worker's thread: a file of this size takes some tenths of a second at worst. */
const maxEditedBytes = 8 * 1024 * 1024;
const maxMatches = 100_000;
const shownLines = 10;

export async function runEdit(request: RequestOf<"edit">, context: RunContext): Promise<ValueOf<"edit">> {
  const { path } = request;
  const { bytes, sha256 } = await readWhole(path, maxEditedBytes, context);
  const { content, count } = edited(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), request);
  const { signal } = context;
  const written = await context.sandbox.files
    .write(path, content, { ifMatch: sha256, signal })
    .catch(changed(path));
  return { count, size: written.size, sha256: written.sha256 };
}

function changed(path: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof FileRefusal) || error.code !== "mismatch") throw error;
    throw new Refusal(
      "mismatch",
      `${path} was changed by something else meanwhile; nothing was written, try again`,
    );
  };
}

/** Works on bytes, so that text outside the match stays unchanged even if it is not UTF-8. */
export function edited(
  content: Buffer,
  { path, find, replace, all }: Pick<RequestOf<"edit">, "path" | "find" | "replace" | "all">,
): { content: Buffer; count: number } {
  const wanted = Buffer.from(find);
  const replacement = Buffer.from(replace);
  const found = findBytes(content, wanted, maxMatches + 1);
  if (found.length === 0) throw new Refusal("no-match", noMatchText(content, path, find));
  if (found.length > maxMatches) {
    throw new Refusal(
      "too-large",
      `the text to find is more than ${maxMatches} times in ${path}; run a command instead`,
    );
  }
  if (found.length > 1 && !all) {
    const lines = lineNumbers(content, found.slice(0, shownLines)).join(", ");
    throw new Refusal(
      "several-matches",
      `the text to find is ${found.length} times in ${path} (at lines ${lines}${found.length > shownLines ? ", …" : ""}); add lines around it so that it is found once, or say all`,
    );
  }
  const size = content.length + found.length * (replacement.length - wanted.length);
  if (size > maxEditedBytes) {
    throw new Refusal(
      "too-large",
      `${path} would have ${size} bytes; at most ${maxEditedBytes} can be edited`,
    );
  }
  const parts: Buffer[] = [];
  let at = 0;
  for (const position of found) {
    parts.push(content.subarray(at, position), replacement);
    at = position + wanted.length;
  }
  parts.push(content.subarray(at));
  return { content: Buffer.concat(parts, size), count: found.length };
}

function lineNumbers(content: Buffer, ascending: readonly number[]): number[] {
  let line = 1;
  let at = 0;
  return ascending.map((position) => {
    for (let next = content.indexOf(10, at); next >= 0 && next < position; next = content.indexOf(10, at)) {
      line++;
      at = next + 1;
    }
    return line;
  });
}

function noMatchText(content: Buffer, path: string, find: string): string {
  const hints: string[] = [`the text to find is not in ${path}`];
  if (find.includes("\n")) {
    const other = find.includes("\r\n") ? find.replaceAll("\r\n", "\n") : find.replaceAll("\n", "\r\n");
    if (findBytes(content, Buffer.from(other), 1).length > 0) {
      hints.push(
        find.includes("\r\n")
          ? "it is there with lines that end in LF, not CRLF"
          : "it is there with lines that end in CRLF (\\r\\n)",
      );
    }
  }
  const [line] = hints.length > 1 ? [] : nearby(content, find);
  if (line !== undefined) hints.push(`its first line is at line ${line}, but what follows differs`);
  if (hints.length === 1) hints.push("read the file and copy the text exactly, spaces included");
  return problemText(hints);
}

/** The position of the first line that is not blank, if the text has several lines. */
function nearby(content: Buffer, find: string): number[] {
  const first = find.split("\n").find((line) => line.trim() !== "");
  if (first === undefined || first === find) return [];
  return lineNumbers(content, findBytes(content, Buffer.from(first), 1));
}
