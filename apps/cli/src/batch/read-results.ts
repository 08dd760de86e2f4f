import { Complaint } from "../complaint.ts";
import { fileLines } from "./file-lines.ts";
import { beginsResultLine, type ResultLine, readResultLine } from "./result-line.ts";

export interface StoredResult {
  readonly line: ResultLine;
  /** Its newline is missing: the writer was killed right before it. */
  readonly isCut: boolean;
}

/**
 * Yields the results in a file, in its order. If the writer was killed within the last line, returns the byte at which that line begins,
 * so that the caller can cut it off. Throws for a file with any other line.
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
