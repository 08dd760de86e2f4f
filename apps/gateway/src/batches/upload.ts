import { setTimeout as sleep } from "node:timers/promises";
import { type CheckedOrder, isNoRoom, isOrderFault } from "@berth/client";
import { sandboxKeyOf } from "@berth/protocol";
import { detailOf } from "../http/failure.ts";
import { parseInput } from "../http/parse-input.ts";
import { Problem } from "../http/problem.ts";
import { draftOf, type SubmissionHeaders } from "../jobs/submission.ts";
import type { Principal } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import { order } from "../schemas/job.ts";
import { batchJobId } from "./batch-store.ts";
import { InOrder } from "./in-order.ts";

/** An order as it was sent. */
export interface SentOrder {
  readonly bytes: number;
  /** Throws a `Problem` when it is not JSON. */
  read(): unknown;
  /** The fleet has it, or it was refused: its bytes need not stay. */
  done(): void;
}

export interface UploadOptions {
  readonly id: string;
  readonly principal: Principal;
  readonly headers: SubmissionHeaders;
  /** Bytes of orders being enqueued at once; past it the sender is held up. */
  readonly inFlightBytes: number;
  /** The sender has gone. */
  readonly signal: AbortSignal;
}

/** Orders being enqueued at once. */
const inFlightMost = 64;
const noteEveryMs = 1_000;
/** A fleet that is full takes more when something has ended. */
const fullPauseMs = 500;
/** Past so many orders that do not fit, the upload is taken for garbage. */
const refusedMost = 1_000;

/**
 * Hands the orders of a batch to the fleet as they come, and no faster than it takes them: a full fleet holds the sender up.
 * Orders of one sandbox stay in their order. One that does not fit ends as refused and does not stop the others.
 */
export class Upload {
  readonly #parts: Pick<Parts, "batches" | "berth">;
  readonly #options: UploadOptions;
  readonly #work: InOrder;
  #taken = 0;
  #refused = 0;
  #cancelled = false;
  #isResumed = false;

  constructor(parts: Pick<Parts, "batches" | "berth">, options: UploadOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#work = new InOrder(inFlightMost, options.inFlightBytes);
  }

  /** Gives how many orders there were. */
  async run(orders: AsyncIterable<SentOrder>): Promise<number> {
    const { batches } = this.#parts;
    const { id } = this.#options;
    this.#isResumed = ((await batches.get(id))?.finished ?? 0) > 0;
    const noting = setInterval(() => void this.#note().catch(() => {}), noteEveryMs);
    try {
      for await (const sent of orders) {
        if (this.#cancelled) throw new Problem("conflict", "the batch was cancelled while it was uploaded");
        await this.#take(sent, this.#taken++);
      }
      await this.#work.finish();
    } finally {
      clearInterval(noting);
      await this.#work.idle();
      await batches.noteSubmitted(id, this.#taken);
      // Nobody will send the rest: the cancellation needs to know where the end is.
      if (this.#cancelled) await batches.noteUploaded(id, this.#taken);
    }
    await batches.noteUploaded(id, this.#taken);
    return this.#taken;
  }

  async #note(): Promise<void> {
    const { batches } = this.#parts;
    const { id } = this.#options;
    await batches.noteSubmitted(id, this.#taken);
    this.#cancelled = (await batches.get(id))?.state === "cancelling";
  }

  async #take(sent: SentOrder, index: number): Promise<void> {
    const made = this.#draft(sent, index);
    if (typeof made === "string") {
      await this.#refuse(index, made);
      sent.done();
      return;
    }
    const submit = async () => {
      if (!(await this.#hasEnded(index))) await this.#submit(made, index);
      sent.done();
    };
    await this.#work.add(sandboxKeyOf(made.job), submit, sent.bytes);
  }

  /** The batch remembers that longer than Redis remembers the job, which would run again. */
  async #hasEnded(index: number): Promise<boolean> {
    const { batches } = this.#parts;
    return this.#isResumed && (await batches.notEnded(this.#options.id, index, 1)).length === 0;
  }

  /** The job to be, or what is wrong with it. */
  #draft(sent: SentOrder, index: number): CheckedOrder | string {
    const { id, principal, headers } = this.#options;
    try {
      const parsed = parseInput(order, sent.read());
      if ("problems" in parsed) return parsed.problems.slice(0, 5).join("; ");
      if (parsed.data.id !== undefined) return "id: the jobs of a batch are named by the batch";
      return draftOf(parsed.data, principal, { headers, id: batchJobId(id, index) });
    } catch (error) {
      if (error instanceof Problem) return error.message;
      throw error;
    }
  }

  async #refuse(index: number, problem: string): Promise<void> {
    this.#refused++;
    if (this.#refused > refusedMost) {
      throw new Problem(
        "invalid-request",
        `more than ${refusedMost} orders do not fit; the last: ${problem}`,
      );
    }
    await this.#parts.batches.noteRefused(this.#options.id, index, problem);
  }

  async #submit(draft: CheckedOrder, index: number): Promise<void> {
    for (;;) {
      try {
        await this.#parts.berth.submit(draft, { detached: true }).enqueued();
        return;
      } catch (error) {
        if (isOrderFault(error)) return this.#refuse(index, detailOf(error, this.#options.principal));
        if (!isNoRoom(error) || this.#options.signal.aborted || this.#cancelled) throw error;
        await sleep(fullPauseMs);
      }
    }
  }
}
