import { type FileHandle, open } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { JobResult } from "@berth/protocol";
import { Complaint } from "../complaint.ts";
import type { Terminal } from "../terminal/terminal.ts";

export interface ResultLine extends JobResult {
  readonly index: number;
  readonly id: string;
}

/** Where a batch's results go, one JSON line each. */
export interface ResultSink {
  /** Results that an earlier run wrote. */
  readonly done: ReadonlySet<number>;
  /** Of those, how many were no success. */
  readonly failedBefore: number;
  add(line: ResultLine): Promise<void>;
  close(): Promise<void>;
}

export function resultsTo(terminal: Terminal): ResultSink {
  return {
    done: new Set(),
    failedBefore: 0,
    add: (line) => terminal.line(JSON.stringify(line)),
    close: async () => {},
  };
}

/** A file that is added to. What an interrupted run left is kept, a line it could not finish is not. */
export class ResultFile implements ResultSink {
  readonly done: ReadonlySet<number>;
  readonly failedBefore: number;
  readonly #file: FileHandle;

  static async open(
    path: string,
    id: string,
    isSuccess: (outcome: JobResult["outcome"]) => boolean,
  ): Promise<ResultFile> {
    const file = await open(path, "a+");
    try {
      const done = new Set<number>();
      let failed = 0;
      let wholeBytes = 0;
      const { size } = await file.stat();
      const input = file.createReadStream({ start: 0, autoClose: false });
      for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
        const bytes = Buffer.byteLength(text) + 1;
        const line = wholeBytes + bytes > size ? undefined : lineOf(text);
        if (!line) break;
        if (line.id !== `${id}-${line.index}`) throw ofAnother(path, line.id, id);
        wholeBytes += bytes;
        done.add(line.index);
        if (!isSuccess(line.outcome)) failed++;
      }
      if (wholeBytes < size) await file.truncate(wholeBytes);
      return new ResultFile(file, done, failed);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  private constructor(file: FileHandle, done: ReadonlySet<number>, failedBefore: number) {
    this.#file = file;
    this.done = done;
    this.failedBefore = failedBefore;
  }

  async add(line: ResultLine): Promise<void> {
    await this.#file.write(`${JSON.stringify(line)}\n`);
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

function lineOf(text: string): ResultLine | undefined {
  try {
    const line = JSON.parse(text);
    return typeof line?.index === "number" && typeof line.id === "string" ? line : undefined;
  } catch {
    return undefined;
  }
}

function ofAnother(path: string, id: string, wanted: string): Complaint {
  return new Complaint(`${path} has results of another batch (${id}, not ${wanted})`, {
    advice: [`go on with that one: --id ${id.replace(/-\d+$/, "")}`, "or write to another file"],
  });
}
