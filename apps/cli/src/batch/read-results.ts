import { Complaint } from "../complaint.ts";
import { fileLines } from "./file-lines.ts";
import { beginsResultLine, type ResultLine, readResultLine } from "./result-line.ts";

export interface StoredResult {
  readonly line: ResultLine;
  /** Its newline is missing: the writer was killed right before it. */
  readonly isCut: boolean;
}

/**
 * The results of a file, in its order. Returns where the file has to end: at the beginning of a last line that its writer could not
 * finish, if there is one. A file with any other line is none of results, and is refused.
 */
export async function* readResults(
  path: string,
  bytes?: number,
): AsyncGenerator<StoredResult, number | undefined> {
  for await (const { number, text, fromByte, isCut } of fileLines(path, bytes)) {
    const line = readResultLine(text);
    if (line) yield { line, isCut };
    else if (isCut && beginsResultLine(text)) return fromByte;
    else throw noResults(path, number, text);
  }
  return undefined;
}

function noResults(path: string, number: number, text: string): Complaint {
  const shown = text.length > 80 ? `${text.slice(0, 80)}…` : text;
  return new Complaint(`${path} is not a file of results: line ${number} is ${JSON.stringify(shown)}`, {
    advice: ["name the file that an earlier --out wrote, or a new one; this one was not changed"],
  });
}
