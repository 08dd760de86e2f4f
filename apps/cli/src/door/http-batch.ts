import { setTimeout as sleep } from "node:timers/promises";
import { type JobResult, withText } from "@berth/protocol";
import { Complaint } from "../complaint.ts";
import type { BatchEnd, BatchToRun, DoorBatch, JobOrder } from "../door.ts";
import { type HttpCalls, path } from "./http-call.ts";
import { ndjsonLines } from "./ndjson.ts";

export interface BatchView {
  readonly id: string;
  readonly state: "uploading" | "running" | "cancelling" | "finished";
  readonly submitted: number;
  readonly total?: number;
  readonly finished: number;
  readonly failed: number;
  readonly cancelledAtMs?: number;
}

interface ResultsLine {
  readonly position: number;
  readonly index: number;
  readonly jobId: string;
  readonly result?: JobResult;
  readonly refused?: string;
  readonly expired?: true;
}

/** One upload request; it is sent again when its connection breaks. */
const part = { orders: 1_000, bytes: 1024 * 1024 } as const;
/** A connection is reopened after this long without data: its peer may have vanished silently. */
const quietMs = 60_000;
const pauseMs = 200;

/**
 * A batch that a gateway runs.
 *
 *   orders ──parts, each repeated until the gateway has it──▶ gateway ──results, resumed after the last one read──▶ reader
 *
 * The gateway derives job ids from positions, so an order that is sent twice runs once. `cancel` stops the upload, then cancels
 * the jobs; `ends` still yields the results of the orders that were sent.
 */
export class HttpBatch implements DoorBatch {
  readonly #calls: HttpCalls;
  readonly #given: BatchToRun;
  readonly #id: string;
  /** The upload is complete on the gateway's side. */
  readonly #isWhole: boolean;
  readonly #left = new AbortController();
  readonly #stopped = new AbortController();
  #changed = Promise.withResolvers<void>();
  #read = 0;
  #ordersRead = false;
  #finished = 0;
  /** The highest position with a result. */
  #furthest = -1;
  readonly #failed = new AbortController();
  #cancelled: boolean;

  /** Creates the batch, or finds it. */
  static async open(calls: HttpCalls, given: BatchToRun): Promise<HttpBatch> {
    calls.outageMs = given.outageMs;
    const opened = await sendPart(calls, given.id, { from: 0, more: true, lines: "" });
    if (opened.total !== undefined && opened.total !== given.total && opened.cancelledAtMs === undefined)
      throw new Complaint(`the batch ${given.id} has ${opened.total} jobs there, not ${given.total}`, {
        advice: ["give this one another name with --id"],
      });
    return new HttpBatch(calls, given, opened);
  }

  private constructor(calls: HttpCalls, given: BatchToRun, opened: BatchView) {
    this.#calls = calls;
    this.#given = given;
    this.#id = opened.id;
    this.#isWhole = opened.total !== undefined;
    this.#cancelled = opened.cancelledAtMs !== undefined;
  }

  get prefix(): string {
    return this.#id;
  }

  get cancelled(): boolean {
    return this.#cancelled;
  }

  async *ends(done: ReadonlySet<number>): AsyncGenerator<BatchEnd> {
    const uploaded = this.#upload();
    uploaded.catch((error: unknown) => {
      this.#failed.abort(error);
      this.#change();
    });
    let after = 0;
    let brokenMs: number | undefined;
    while (!this.#left.signal.aborted) {
      try {
        for await (const line of this.#lines(after)) {
          brokenMs = undefined;
          after = line.position;
          this.#finished++;
          this.#furthest = Math.max(this.#furthest, line.index);
          this.#change();
          await this.#until(() => this.#read > line.index || this.#ordersRead);
          if (!done.has(line.index)) yield { position: line.index, id: line.jobId, result: resultOf(line) };
        }
        // A cut-off answer may look complete, because fetch treats a reset connection as its end.
        if (await this.#isOver(after)) return await uploaded;
      } catch (error) {
        if (this.#left.signal.aborted) return;
        this.#failed.signal.throwIfAborted();
        if (error instanceof Complaint) throw error;
        if (!(error instanceof Quiet)) {
          brokenMs ??= performance.now();
          if (performance.now() - brokenMs > this.#calls.outageMs) throw error;
        }
      }
      await sleep(pauseMs, undefined, { signal: this.#left.signal }).catch(() => {});
    }
  }

  async cancel(): Promise<void> {
    this.#cancelled = true;
    this.#stopped.abort();
    this.#change();
    // The gateway then refuses a part that it holds back, as it does for a full fleet. The upload's end reports how many orders it took.
    await this.#calls.json("DELETE", path`/v1/batches/${this.#id}`);
  }

  leave(): void {
    this.#left.abort();
    this.#stopped.abort();
    this.#change();
  }

  async #upload(): Promise<void> {
    const { signal } = this.#stopped;
    let from = 0;
    let lines: string[] = [];
    let bytes = 0;
    const send = async (more: boolean) => {
      if (!this.#isWhole) await this.#send({ from, more, lines: lines.join("") });
      [from, lines, bytes] = [from + lines.length, [], 0];
    };
    try {
      for await (const order of this.#given.orders) {
        if (signal.aborted) break;
        const line = lineOf(order);
        const isFull = lines.length >= part.orders || bytes + line.length > part.bytes;
        if (lines.length > 0 && (isFull || !this.#hasRoom)) await send(true);
        await this.#until(() => this.#hasRoom || signal.aborted);
        lines.push(line);
        bytes += line.length;
        this.#read++;
        this.#change();
      }
      // The next run continues a batch that was left. A cancelled batch ends with the orders that were sent.
      if (signal.aborted) lines = [];
      if (!this.#left.signal.aborted) await send(false);
    } finally {
      this.#ordersRead = true;
      this.#change();
    }
  }

  /** Without a window the gateway gets everything: its backpressure slows the upload when the fleet is full. */
  get #hasRoom(): boolean {
    const { inFlight } = this.#given;
    // Jobs of an earlier run have ended already, in any order.
    if (inFlight === undefined || this.#read <= this.#furthest) return true;
    return this.#read - this.#finished < inFlight;
  }

  async #send(what: Part): Promise<void> {
    try {
      await sendPart(this.#calls, this.#given.id, what);
    } catch (error) {
      if (!(error instanceof Complaint && error.code === "conflict")) throw error;
      const { cancelledAtMs } = await this.#calls.json<BatchView>("GET", path`/v1/batches/${this.#id}`);
      if (cancelledAtMs === undefined) throw error;
      // Another caller cancelled the batch during the upload.
      this.#cancelled = true;
      this.#stopped.abort();
    }
  }

  async *#lines(after: number): AsyncGenerator<ResultsLine> {
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, this.#left.signal, this.#failed.signal]);
    const { body } = await this.#calls.response("GET", path`/v1/batches/${this.#id}/results`, {
      query: { after },
      signal,
    });
    let timer: NodeJS.Timeout | undefined;
    const restartTimer = () => {
      clearTimeout(timer);
      timer = setTimeout(() => over.abort(new Quiet()), quietMs);
    };
    restartTimer();
    try {
      for await (const line of ndjsonLines<ResultsLine>(body ?? ReadableStream.from([]))) {
        restartTimer();
        yield line;
      }
    } catch (error) {
      throw over.signal.reason instanceof Quiet ? over.signal.reason : error;
    } finally {
      clearTimeout(timer);
      over.abort();
    }
  }

  async #isOver(after: number): Promise<boolean> {
    const { state, finished } = await this.#calls.json<BatchView>("GET", path`/v1/batches/${this.#id}`);
    return state === "finished" && after >= finished;
  }

  /** Waits for a condition; also returns when the upload failed or the batch was left. */
  async #until(isSo: () => boolean): Promise<void> {
    const isOver = () => this.#failed.signal.aborted || this.#left.signal.aborted;
    while (!isSo() && !isOver()) await this.#changed.promise;
  }

  #change(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }
}

/** No data for a while, which is normal for a batch of long jobs. */
class Quiet extends Error {}

interface Part {
  readonly from: number;
  readonly more: boolean;
  readonly lines: string;
}

function sendPart(calls: HttpCalls, id: string, { from, more, lines }: Part): Promise<BatchView> {
  return calls.json<BatchView>("POST", "/v1/batches", {
    query: { from, more: String(more) },
    headers: { "idempotency-key": id, "content-type": "application/x-ndjson" },
    text: lines,
    repeatable: true,
  });
}

/** The gateway assigns the job ids. */
function lineOf({ id: _, ...order }: JobOrder): string {
  return `${JSON.stringify(order)}\n`;
}

function resultOf({ result, refused }: ResultsLine): JobResult {
  if (result) return result;
  const outcome =
    refused === undefined
      ? ({
          kind: "lost",
          message: "it ended more than a day ago, and its result is not kept any more",
        } as const)
      : ({ kind: "refused", code: "invalid-job", message: refused } as const);
  return withText({ outcome, value: {}, timing: { wallMs: 0, cpuMs: 0 } });
}
