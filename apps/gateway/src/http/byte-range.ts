import { Problem } from "./problem.ts";

export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

/**
 * Parses a Range header for an artifact of `size` bytes; undefined means the whole artifact. Multiple ranges and unknown units
 * also return the whole artifact, as RFC 9110 allows.
 */
export function rangeOf(header: string | undefined, size: number): ByteRange | undefined {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  const offset = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (offset > end || offset >= size) {
    throw new Problem("range-not-satisfiable", `range not satisfiable: the artifact has ${size} bytes`, {
      headers: { "content-range": `bytes */${size}` },
    });
  }
  return { offset, length: end - offset + 1 };
}
