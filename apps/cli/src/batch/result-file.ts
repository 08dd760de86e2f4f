import { type FileHandle, open } from "node:fs/promises";
import { Complaint } from "../complaint.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { readResults } from "./read-results.ts";
import type { ResultLine } from "./result-line.ts";

/** Receives a batch's results, one JSON line each. */
export interface ResultSink {
  add(line: ResultLine): Promise<void>;
  close(): Promise<void>;
}

export function resultsTo(terminal: Terminal): ResultSink {
  return { add: (line) => terminal.line(JSON.stringify(line)), close: async () => {} };
}

export const noResults: ResultSink = { add: async () => {}, close: async () => {} };

/** Appends results to a file. Keeps those of an interrupted run, but for an incomplete last line. Refuses, and does not change, other files. */
export class ResultFile implements ResultSink {
  readonly #file: FileHandle;

  /** Calls `onEarlier` for each result that an earlier run of the same batch wrote. `prefix` begins the ids of its jobs. */
  static async open(
    path: string,
    prefix: string,
    onEarlier: (line: ResultLine) => void,
  ): Promise<ResultFile> {
    const file = await open(path, "a+");
    try {
      const { size } = await file.stat();
      const results = readResults(path, size);
      let lacksNewline = false;
      let next = await results.next();
      for (; !next.done; next = await results.next()) {
        const { line, isCut } = next.value;
        if (line.id.replace(/-\d+$/, "") !== prefix) throw ofAnother(path, line.id, prefix);
        lacksNewline = isCut;
        onEarlier(line);
      }
      if (next.value !== undefined) await file.truncate(next.value);
      if (lacksNewline) await file.write("\n");
      return new ResultFile(file);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  async add(line: ResultLine): Promise<void> {
    await this.#file.write(`${JSON.stringify(line)}\n`);
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

function ofAnother(path: string, id: string, wanted: string): Complaint {
  return new Complaint(`${path} has results of another batch (${id}, not ${wanted}-…)`, {
    advice: [
      "go on with that one by its --id, through the same gateway or Redis",
      "or write to another file",
    ],
  });
}
