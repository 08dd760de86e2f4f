import { randomBytes } from "node:crypto";
import type { JobResult, Outcome } from "@berth/protocol";
import type { Context } from "./context.ts";
import { writeInParts } from "./copy/write-parts.ts";
import type { JobOrder } from "./door.ts";
import { stdinPath } from "./exec-order.ts";
import { runJob } from "./run-job.ts";
import { type Stdin, wholeStdin } from "./stdin.ts";

/** Outcomes of a command that may never have begun. */
const mayNotHaveBegun: ReadonlySet<Outcome["kind"]> = new Set(["cancelled", "refused", "lost"]);

/**
 * Stdin that is too long for one job becomes a file of the workspace, written by jobs of the same session. It counts for the
 * workspace's quota. The command unlinks it when it starts; call `remove` for a command that never starts.
 */
export class LargeStdin {
  readonly path = stdinPath();
  /** The command's sandbox. A fork of the command's own gets a session name, so that the jobs that write stdin use the same fork. */
  readonly place: Omit<JobOrder, "request">;
  readonly #context: Context;
  readonly #isOwnFork: boolean;

  constructor(context: Context, place: Omit<JobOrder, "request">) {
    this.#context = context;
    this.#isOwnFork = place.forkOf !== undefined && place.session === undefined && place.scope === undefined;
    const named = {
      session: `fork-${randomBytes(8).toString("hex")}`,
      scope: "session",
      discard: true,
    } as const;
    this.place = this.#isOwnFork ? { ...place, ...named } : place;
  }

  async write(stdin: Stdin): Promise<void> {
    const { discard: _, ...place } = this.place;
    const send = (request: JobOrder["request"]) => runJob(this.#context, { ...place, request });
    try {
      await writeInParts({ send }, this.path, wholeStdin(stdin), { append: true });
    } catch (error) {
      await this.remove();
      throw error;
    }
  }

  /** Call after the command's end. A fork of its own was removed with the command, if the command began. */
  async removeAfter({ outcome }: JobResult): Promise<void> {
    if (!this.#isOwnFork || mayNotHaveBegun.has(outcome.kind)) await this.remove();
  }

  /** Submits the removal and does not wait for it: during a wait Ctrl-C would cancel it. */
  async remove(): Promise<void> {
    const door = await this.#context.door();
    await door.submit(this.#removal()).catch(() => {});
  }

  #removal(): JobOrder {
    const { discard: _, ...place } = this.place;
    if (!this.#isOwnFork) return { ...place, request: { kind: "remove", path: this.path, missingOk: true } };
    // Without `forkOf`, so that destroying does not first create the fork.
    const { forkOf: __, ...session } = place;
    return { ...session, request: { kind: "destroy" } };
  }
}
