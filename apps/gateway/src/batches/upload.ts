import { type CheckedOrder, isNoRoom, isOrderFault, untilRoom } from "@berth/client";
import { batchJobId, type StoredBatch } from "@berth/ledger";
import { isFault, sandboxKeyOf } from "@berth/protocol";
import { detailOf } from "../http/failure.ts";
import { parseInput } from "../http/parse-input.ts";
import { Problem } from "../http/problem.ts";
import { draftOf, type SubmissionHeaders } from "../jobs/submission.ts";
import type { Principal } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import { order } from "../schemas/job.ts";
import { InOrder } from "./in-order.ts";

/** An order as the client sent it. */
export interface SentOrder {
  readonly bytes: number;
  /** Throws a `Problem` if the order is not JSON. */
  read(): unknown;
  /** Frees the order's bytes: the fleet accepted or refused it. */
  done(): void;
}

/** One request's share of a batch. */
export interface Part {
  /** Position of the part's first order in the batch. */
  readonly from: number;
  /** More parts follow. */
  readonly more: boolean;
}

export interface UploadOptions extends Part {
  readonly batch: StoredBatch;
  readonly principal: Principal;
  readonly headers: SubmissionHeaders;
  /** Maximum bytes of orders being enqueued; beyond it, backpressure stops the sender. */
  readonly inFlightBytes: number;
  /** Fires when the sender disconnects. */
  readonly signal: AbortSignal;
}

/** Maximum number of orders being enqueued at once. */
const inFlightMost = 64;
const noteEveryMs = 1_000;
/** Ends are looked up for so many orders at once. */
const endsAtOnce = 4_096;
/** With this many invalid orders, the whole upload is rejected as garbage. */
const refusedMost = 1_000;

/**
 * Submits a batch's orders as they arrive, as fast as the fleet accepts them: a full fleet slows the sender (backpressure).
 * Orders of one sandbox stay in order. An invalid order ends as refused and does not stop the others.
 */
export class Upload {
  readonly #parts: Pick<Parts, "batches" | "berth">;
  readonly #options: UploadOptions;
  readonly #work: InOrder;
  /** Position after the last order read, earlier parts included. */
  #taken: number;
  #refused = 0;
  #cancelled: boolean;
  /** Cache: from position `from` on, the orders whose end is unknown. */
  #open: { readonly from: number; readonly isOpen: Promise<ReadonlySet<number>> } | undefined;

  constructor(parts: Pick<Parts, "batches" | "berth">, options: UploadOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#work = new InOrder(inFlightMost, options.inFlightBytes);
    this.#taken = options.from;
    this.#cancelled = options.batch.cancelledAtMs !== undefined;
  }

  async run(orders: AsyncIterable<SentOrder>): Promise<void> {
    const { batches } = this.#parts;
    const { more, batch } = this.#options;
    const { id } = batch;
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
      await batches.noteSubmitted(id, this.#furthest);
      // No more orders will come. The cancellation needs to know how many there are.
      if (this.#cancelled) await batches.noteUploaded(id, this.#furthest);
    }
    if (!more) await batches.noteUploaded(id, this.#furthest);
  }

  /** A repeated part must not lower the count past the parts that follow it. */
  get #furthest(): number {
    return Math.max(this.#taken, this.#options.batch.submitted);
  }

  async #note(): Promise<void> {
    const { batches } = this.#parts;
    const { id } = this.#options.batch;
    await batches.noteSubmitted(id, this.#furthest);
    this.#cancelled = (await batches.get(id))?.cancelledAtMs !== undefined;
  }

  async #take(sent: SentOrder, index: number): Promise<void> {
    const made = await this.#draft(sent, index);
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

  /** The batch remembers an end longer than Redis remembers the job. Without this check such a job would run again. */
  async #hasEnded(index: number): Promise<boolean> {
    const { batch } = this.#options;
    if (batch.finished === 0) return false;
    const from = index - (index % endsAtOnce);
    if (this.#open?.from !== from)
      this.#open = {
        from,
        isOpen: this.#parts.batches.notEnded(batch.id, from, endsAtOnce).then((indexes) => new Set(indexes)),
      };
    return !(await this.#open.isOpen).has(index);
  }

  /** The job to submit, or the reason why the order is invalid. */
  async #draft(sent: SentOrder, index: number): Promise<CheckedOrder | string> {
    const { batch, principal, headers } = this.#options;
    try {
      const parsed = parseInput(order, sent.read());
      if ("problems" in parsed) return parsed.problems.slice(0, 5).join("; ");
      if (parsed.data.id !== undefined) return "id: the jobs of a batch are named by the batch";
      const draft = draftOf(parsed.data, principal, { headers, id: batchJobId(batch.id, index) });
      return await this.#parts.berth.placed(draft);
    } catch (error) {
      if (isOrderFault(error)) return detailOf(error, principal);
      if (error instanceof Problem) return error.message;
      throw error;
    }
  }

  async #refuse(index: number, problem: string): Promise<void> {
    this.#refused++;
    if (this.#refused > refusedMost) {
      throw new Problem(
        "invalid-request",
        `more than ${refusedMost} orders are invalid; the last: ${problem}`,
      );
    }
    await this.#parts.batches.noteRefused(this.#options.batch.id, index, problem);
  }

  async #submit(draft: CheckedOrder, index: number): Promise<void> {
    const { signal, principal } = this.#options;
    const goesOn = (error: unknown) =>
      (isNoRoom(error) || isFault(error, "redis-full")) && !signal.aborted && !this.#cancelled;
    try {
      const submit = () => this.#parts.berth.submit(draft, { detached: true }).enqueued();
      // Where the sender has gone while it was held up, it has to send this order again.
      if (!(await untilRoom(submit, { goesOn, signal }))) signal.throwIfAborted();
    } catch (error) {
      if (!isOrderFault(error)) throw error;
      await this.#refuse(index, detailOf(error, principal));
    }
  }
}
