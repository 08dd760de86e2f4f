import { setTimeout as sleep } from "node:timers/promises";
import { isFault, problemsOf, sandboxKeyOf } from "@berth/protocol";
import { Problem } from "../http/problem.ts";
import { type Draft, draftOf, type SubmissionHeaders } from "../jobs/submission.ts";
import type { Principal } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import { order } from "../schemas/job.ts";
import { batchJobId } from "./batch-store.ts";
import { InOrder } from "./in-order.ts";

export interface UploadOptions {
  readonly id: string;
  readonly principal: Principal;
  readonly headers: SubmissionHeaders;
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
  readonly #parts: Pick<Parts, "batches" | "submitter">;
  readonly #options: UploadOptions;
  readonly #work = new InOrder(inFlightMost);
  #taken = 0;
  #refused = 0;
  #cancelled = false;

  constructor(parts: Pick<Parts, "batches" | "submitter">, options: UploadOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  /** Each draft is an order as it was sent, still to be read. Gives how many there were. */
  async run(drafts: AsyncIterable<() => unknown>): Promise<number> {
    const { batches } = this.#parts;
    const { id } = this.#options;
    const noting = setInterval(() => void this.#note().catch(() => {}), noteEveryMs);
    try {
      for await (const draft of drafts) {
        if (this.#cancelled) throw new Problem("conflict", "the batch was cancelled while it was uploaded");
        await this.#take(draft, this.#taken++);
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

  async #take(draft: () => unknown, index: number): Promise<void> {
    const made = this.#draft(draft, index);
    if (typeof made === "string") await this.#refuse(index, made);
    else await this.#work.add(sandboxKeyOf(made.job), () => this.#submit(made, index));
  }

  /** The job to be, or what is wrong with it. */
  #draft(draft: () => unknown, index: number): Draft | string {
    const { id, principal, headers } = this.#options;
    try {
      const parsed = order.safeParse(draft());
      if (!parsed.success) return problemsOf(parsed.error).slice(0, 5).join("; ");
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

  async #submit(draft: Draft, index: number): Promise<void> {
    for (;;) {
      try {
        await this.#parts.submitter.submit(draft);
        return;
      } catch (error) {
        const full = isFault(error, "sandbox-full") || isFault(error, "fleet-full");
        const unfit = isFault(error, "wrong-pool") || isFault(error, "payload-too-large");
        if (unfit) return this.#refuse(index, error.message);
        if (!full || this.#options.signal.aborted || this.#cancelled) throw error;
        await sleep(fullPauseMs);
      }
    }
  }
}
