import type { JobResult } from "@berth/protocol";
import type { DoorBatch, JobOrder } from "../door.ts";
import { type BatchLine, batchLines } from "./batch-file.ts";
import { type ResultLine, resultLine } from "./result-line.ts";
import type { Selection } from "./selection.ts";

/** After a batch was stopped, waits this long for the next result: a running job may never end. */
const stoppedMs = 60_000;

type About = Omit<BatchLine, "order">;

export interface LinesToRun {
  readonly file: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly selection: Selection;
}

/** Feeds the lines of a file to a batch and turns its ends into lines of results. */
export class BatchRun {
  readonly #lines: LinesToRun;
  /** Jobs that were submitted and have not ended, by position. */
  readonly #open = new Map<number, About>();
  /** 1 at each position that has a result. */
  readonly #ended: Uint8Array;
  readonly #before = new Set<number>();

  constructor(lines: LinesToRun) {
    this.#lines = lines;
    this.#ended = new Uint8Array(lines.selection.total);
  }

  /** Notes a result of an earlier run. False: it was noted before, or belongs to no job of this batch. */
  noteEarlier({ index }: ResultLine): boolean {
    const position = this.#lines.selection.positionOf(index);
    if (position === undefined || this.#before.has(position)) return false;
    this.#ended[position] = 1;
    this.#before.add(position);
    return true;
  }

  async *orders(): AsyncGenerator<JobOrder> {
    for await (const { position, order, ...about } of this.#selected()) {
      if (!this.#before.has(position)) this.#open.set(position, about);
      yield order;
    }
  }

  /** Ends when the batch is over, or when a stopped batch stays silent. */
  async *results(batch: DoorBatch): AsyncGenerator<ResultLine> {
    let timer: NodeJS.Timeout | undefined;
    let isLeft = false;
    const restartTimer = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        isLeft = batch.cancelled;
        if (isLeft) batch.leave();
        else restartTimer();
      }, stoppedMs);
    };
    restartTimer();
    try {
      for await (const end of batch.ends(this.#before)) {
        restartTimer();
        const about = this.#open.get(end.position);
        if (!about) continue;
        this.#open.delete(end.position);
        this.#ended[end.position] = 1;
        yield resultLine(about, end);
      }
    } finally {
      clearTimeout(timer);
    }
    if (batch.cancelled && !isLeft) yield* this.#neverSubmitted(batch.prefix);
  }

  /** Gives every job a line: one that was cancelled before it was submitted counts as failed. */
  async *#neverSubmitted(prefix: string): AsyncGenerator<ResultLine> {
    for await (const { position, order: _, ...about } of this.#selected()) {
      if (this.#ended[position] === 1) continue;
      const result: JobResult = {
        outcome: { kind: "cancelled", reason: "the batch was cancelled before it was submitted" },
        value: {},
        timing: { wallMs: 0, cpuMs: 0 },
      };
      yield resultLine(about, { id: `${prefix}-${position}`, result });
    }
  }

  async *#selected(): AsyncGenerator<BatchLine & { readonly position: number }> {
    const { file, labels, selection } = this.#lines;
    for await (const line of batchLines(file, labels)) {
      const position = selection.positionOf(line.index);
      if (position === undefined) continue;
      selection.check(line);
      yield { ...line, position };
    }
  }
}
