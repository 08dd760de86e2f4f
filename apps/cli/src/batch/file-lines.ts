import { createReadStream } from "node:fs";
import { Complaint } from "../complaint.ts";

/** Longer than the line of any job or result. Without a limit, a file without newlines would fill the memory. */
const mostLineBytes = 256 * 1024 * 1024;
const newline = 0x0a;

export interface FileLine {
  /** From 1. */
  readonly number: number;
  /** Without its newline. */
  readonly text: string;
  readonly fromByte: number;
  /** The file ended before a newline. */
  readonly isCut: boolean;
}

/**
 * Yields the lines of a file without holding all of it in memory. Only a newline ends a line: node:readline also splits at U+2028, which
 * JSON does not escape. `bytes`: reads at most this many, for a file that grows meanwhile.
 */
export async function* fileLines(path: string, bytes = Number.POSITIVE_INFINITY): AsyncGenerator<FileLine> {
  if (bytes === 0) return;
  let parts: Buffer[] = [];
  let length = 0;
  let number = 1;
  let fromByte = 0;
  const line = (isCut: boolean): FileLine => {
    const text = Buffer.concat(parts).toString().replace(/\r$/, "");
    const read = { number, text, fromByte, isCut };
    number++;
    fromByte += length + 1;
    [parts, length] = [[], 0];
    return read;
  };
  for await (const chunk of createReadStream(path, { end: bytes - 1 }) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let to = chunk.indexOf(newline); to >= 0; to = chunk.indexOf(newline, from)) {
      parts.push(chunk.subarray(from, to));
      length += to - from;
      from = to + 1;
      yield line(false);
    }
    if (from === chunk.length) continue;
    parts.push(chunk.subarray(from));
    length += chunk.length - from;
    if (length > mostLineBytes)
      throw new Complaint(
        `${path}: line ${number} is longer than ${mostLineBytes / 1024 / 1024} MiB; it is no file of JSON lines`,
      );
  }
  if (length > 0) yield line(true);
}
