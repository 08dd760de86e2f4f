import { Problem } from "./problem.ts";

export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

/**
 * What a Range header asks for of `size` bytes: undefined when it is all of them. Several ranges, and unknown units, are
 * answered with everything, as the standard allows.
 */
export function rangeOf(header: string | undefined, size: number): ByteRange | undefined {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  const offset = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (offset > end || offset >= size) {
    throw new Problem("range-not-satisfiable", `there are ${size} bytes`, {
      headers: { "content-range": `bytes */${size}` },
    });
  }
  return { offset, length: end - offset + 1 };
}
