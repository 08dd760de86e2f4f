import { Refusal } from "../run-context.ts";
import { parseDiff } from "./unified-diff.ts";

/** The files that a job would change by the diff. None of a diff that it would refuse. */
export function diffPaths(diff: string): string[] {
  try {
    const paths = parseDiff(diff).flatMap(({ oldPath, newPath }) => [oldPath, newPath]);
    return [...new Set(paths.filter((path) => path !== undefined))];
  } catch (error) {
    if (error instanceof Refusal) return [];
    throw error;
  }
}
