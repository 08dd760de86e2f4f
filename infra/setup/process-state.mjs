import { readFileSync } from "node:fs";

/**
 * What runs under a pid, from Linux's /proc; undefined when nothing does, or where there is no /proc. A zombie counts
 * as nothing: where process 1 reaps no children, as in many containers, a killed program stays one for ever.
 * @param {number} pid
 * @returns {{ name: string, parent: number, startedAt: string } | undefined} `startedAt`, in clock ticks since boot,
 *   distinguishes two processes that had the same pid
 */
export function processUnder(pid) {
  let stat;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // The name is in parentheses and may hold spaces and parentheses itself; the other fields follow the last one.
  const end = stat.lastIndexOf(")");
  const [state, parent, ...rest] = stat.slice(end + 2).split(" ");
  if (state === "Z" || state === "X") return undefined;
  return { name: stat.slice(stat.indexOf("(") + 1, end), parent: Number(parent), startedAt: rest[17] ?? "" };
}
