import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** A line of a sandbox's ledger: a command began, or it came to its end by itself. */
export interface LedgerLine {
  readonly what: "began" | "ended";
  readonly mark: string;
}

const file = "ledger";

/** A shell command that writes down that it runs. The ledger is in the workspace: it outlives containers and workers. */
export function ledgered(mark: string, body = "true"): string {
  return `echo +${mark} >> ${file}; ( ${body} ); code=$?; echo -${mark} >> ${file}; exit $code`;
}

/** What ran in one sandbox, in order, as its commands recorded it. */
export async function readLedger(workspaces: string, key: string): Promise<LedgerLine[]> {
  const text = await readFile(join(workspaces, key, file), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => ({ what: line.startsWith("+") ? "began" : "ended", mark: line.slice(1) }));
}
