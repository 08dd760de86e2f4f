import { Refusal } from "../run-context.ts";
import { parseDiff } from "./unified-diff.ts";

/** The files that the diff would change; none if a job would refuse it. */
export function diffPaths(diff: string): string[] {
  try {
    const paths = parseDiff(diff).flatMap(({ oldPath, newPath }) => [oldPath, newPath]);
    return [...new Set(paths.filter((path) => path !== undefined))];
  } catch (error) {
    if (error instanceof Refusal) return [];
    throw error;
  }
}
