import type { Berth } from "@berth/client";
import { type BoardQueueId, type FailedJobs, jobIdOf } from "@berth/ledger";
import { isFault, isSuccess } from "@berth/protocol";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Problem } from "../http/problem.ts";
import { type Audit, noted } from "../keys/audit.ts";
import type { BoardQueues } from "./board-queues.ts";

const retryOne = "/board/api/queues/:queueName/:jobId/retry";
const retryAll = "/board/api/queues/:queueName/retry/:queueStatus";
/** One click runs at most this many dead letters again; a sandbox lists a hundred failed jobs. */
const mostAtOnce = 500;

export interface ChangesParts {
  readonly berth: Berth;
  readonly audit: Audit;
  readonly queues: BoardQueues;
  readonly isReadOnly: boolean;
}

/**
 * The only change that the dashboard may make: it runs jobs again that did not succeed, each through the client under a new id. Bull
 * Board's own handlers would remove jobs from their queues without a terminal record, so no changing request reaches them.
 */
export class Changes {
  readonly #parts: ChangesParts;

  constructor(parts: ChangesParts) {
    this.#parts = parts;
  }

  async answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const route = request.routeOptions.url;
    if (this.#parts.isReadOnly) throw notAllowed("this board is read-only (BERTH_BOARD)");
    if (request.method !== "PUT" || (route !== retryOne && route !== retryAll))
      throw notAllowed("the board only runs failed jobs again; use the client, HTTP or the berth command");
    const { queueName = "", jobId = "", queueStatus } = request.params as Record<string, string>;
    const queueId = this.#parts.queues.queueIdOf(queueName);
    if (queueId === undefined) throw new Problem("not-found", "the board does not show that queue");
    if (queueId.kind !== "sandbox" && queueId.kind !== "dead")
      throw notAllowed("nothing of this queue can be run again");
    if (route === retryOne) {
      await this.#again(queueId, jobId, request);
      return reply.code(204).send();
    }
    if (queueStatus !== "failed") throw new Problem("invalid-request", "only failed jobs are run again");
    return reply.send(await this.#allAgain(queueId, queueName, request));
  }

  async #again(queueId: BoardQueueId, entry: string, request: FastifyRequest): Promise<void> {
    const { berth, audit } = this.#parts;
    const id = await this.#jobIdOf(queueId, entry);
    const again = await redriven(() =>
      queueId.kind === "dead" ? berth.deadLetters.redrive(id) : berth.jobs.redrive(id),
    );
    const action = queueId.kind === "dead" ? "dead-letter.redriven" : "job.redriven";
    await audit.note(action, noted(request, `${id} as ${again}`));
  }

  /** The job of a queue's entry. Throws when it cannot be run again from there. */
  async #jobIdOf(queueId: BoardQueueId, entry: string): Promise<string> {
    if (queueId.kind === "dead") return entry.replace(/^d-/, "");
    const id = jobIdOf(entry);
    const job = await this.#parts.berth.jobs.find(id);
    if (job === undefined || queueId.kind !== "sandbox" || job.sandbox !== queueId.key)
      throw new Problem("not-found", "no such job is known in this sandbox");
    if (job.result !== undefined && isSuccess(job.result.outcome))
      throw new Problem("conflict", "the job succeeded in the end");
    return id;
  }

  /** Runs jobs again in the order of their ends, so that a session keeps its order. Leaves out cancelled jobs. */
  async #allAgain(queueId: BoardQueueId, queueName: string, request: FastifyRequest) {
    const { berth, audit } = this.#parts;
    const { ids, others } = await this.#failedOf(queueId);
    let retried = 0;
    let trouble: unknown;
    for (const id of ids) {
      try {
        await (queueId.kind === "dead" ? berth.deadLetters.redrive(id) : berth.jobs.redrive(id));
        retried++;
      } catch (error) {
        // Skip a job that cannot be run again. A limit, or a Redis that is away, ends the loop.
        if (isFault(error, "not-redrivable")) continue;
        trouble = error;
        break;
      }
    }
    if (retried > 0) await audit.note("job.redriven", noted(request, `${retried} failed of ${queueName}`));
    if (trouble !== undefined && retried === 0) throw trouble;
    return { retried, skipped: others + ids.length - retried };
  }

  async #failedOf(queueId: BoardQueueId): Promise<FailedJobs> {
    const { berth } = this.#parts;
    if (queueId.kind === "sandbox") return await berth.jobs.failed(queueId.key);
    const letters = await berth.deadLetters.list({ limit: mostAtOnce });
    return { ids: letters.map(({ jobId }) => jobId).reverse(), others: 0 };
  }
}

async function redriven(redrive: () => Promise<string>): Promise<string> {
  try {
    return await redrive();
  } catch (error) {
    if (!isFault(error, "not-redrivable")) throw error;
    const codes = { "not-found": "not-found", unreadable: "refused", unfinished: "conflict" } as const;
    throw new Problem(codes[error.context.reason], error.message);
  }
}

function notAllowed(detail: string): Problem {
  return new Problem("method-not-allowed", detail);
}
