import { Enqueuer } from "@berth/client";
import { Schedule } from "@berth/queue";
import type { Redis } from "@berth/redis";
import { Staging } from "@berth/streams";
import type { Draft } from "./submission.ts";

/** Hands jobs to the fleet, now or when they are due. Nobody's inbox is told: whoever wants to know reads the job's stream. */
export class Submitter {
  readonly #enqueuer: Enqueuer;
  readonly #schedule: Schedule;

  constructor(redis: Redis) {
    this.#enqueuer = new Enqueuer(redis);
    this.#schedule = new Schedule(redis, new Staging(redis));
  }

  /** `known`: it was submitted before. */
  async submit({ job, dueAtMs, newId }: Draft): Promise<"added" | "known"> {
    return dueAtMs === undefined
      ? this.#enqueuer.enqueue(job, { newId })
      : this.#schedule.accept(job, dueAtMs);
  }

  async close(): Promise<void> {
    await this.#enqueuer.close();
    await this.#schedule.close();
  }
}
