import type { Context } from "./context.ts";
import { writeInParts } from "./copy/write-parts.ts";
import type { JobOrder } from "./door.ts";
import { stdinPath } from "./exec-order.ts";
import { runJob } from "./run-job.ts";
import { type Stdin, wholeStdin } from "./stdin.ts";

/**
 * Stdin that is too long for one job, as a file of the workspace: it is written by jobs of the same session, and counts for the
 * workspace's quota. The command takes its name away when it begins; `remove` is for a command that never begins.
 */
export class LargeStdin {
  readonly path = stdinPath();
  readonly #context: Context;
  readonly #place: Omit<JobOrder, "request">;

  constructor(context: Context, place: Omit<JobOrder, "request">) {
    this.#context = context;
    this.#place = place;
  }

  async write(stdin: Stdin): Promise<void> {
    const send = (request: JobOrder["request"]) => runJob(this.#context, { ...this.#place, request });
    try {
      await writeInParts({ send }, this.path, wholeStdin(stdin), { append: true });
    } catch (error) {
      await this.remove();
      throw error;
    }
  }

  /** The job is not waited for: Ctrl-C would cancel it. */
  async remove(): Promise<void> {
    const door = await this.#context.door();
    const request = { kind: "remove", path: this.path, missingOk: true } as const;
    await door.submit({ ...this.#place, request }).catch(() => {});
  }
}
