import {
  agentName,
  BoundedWait,
  type JobRequestInput,
  type Scope,
  sandboxKeyOf,
  sessionName,
  tenantId,
} from "@berth/protocol";
import type { CallToolResult } from "@modelcontextprotocol/server";
import { type Answer, endedAnswer, failedAnswer, unfinishedAnswer } from "./answer.ts";
import { follow } from "./follow.ts";
import type { FleetPort, FollowedJob, SandboxAddress } from "./port.ts";
import type { Notify } from "./progress.ts";

/** Answers every call within this time: clients commonly give up after 60 s. */
export const defaultAnswerWithinMs = 50_000;

export interface ToolboxOptions {
  readonly address: SandboxAddress;
  readonly answerWithinMs?: number | undefined;
  /** Fires when the server stops: calls answer at once, and their jobs continue. */
  readonly stopping?: AbortSignal | undefined;
}

export interface Call {
  /** Fires when the client cancelled the call. */
  readonly cancelled: AbortSignal;
  readonly notify?: Notify | undefined;
  /** Overrides the sandbox's session. */
  readonly session?: string | undefined;
  /** Overrides the sandbox's profile, for tools that run under their own. */
  readonly profile?: string | undefined;
}

/** Runs tool calls. A failure is an answer, never an exception. */
export class Toolbox {
  readonly #port: FleetPort;
  readonly #options: ToolboxOptions;
  readonly #open = new Set<Promise<unknown>>();

  constructor(port: FleetPort, options: ToolboxOptions) {
    this.#port = port;
    this.#options = options;
  }

  get address(): SandboxAddress {
    return this.#options.address;
  }

  run(request: JobRequestInput, call: Call): Promise<CallToolResult> {
    return this.#explained(async () => {
      const job = await this.#submit(request, call);
      using looking = new BoundedWait();
      const answer = this.#toAnswer(job, call);
      // "No sandbox" answers the call only if the job does not start first.
      const no = await Promise.race([
        answer.then(
          () => undefined,
          () => undefined,
        ),
        this.#port.noSandbox?.(job.id, looking.signal) ?? answer.then(() => undefined),
      ]);
      if (no) await job.cancel();
      const answered = await answer;
      return no && neverBegan(answered) ? failedAnswer(no) : answered;
    });
  }

  /** Waits for a job of the same sandbox again. */
  job(
    { id, action, after }: { id: string; action: "wait" | "cancel"; after?: string | undefined },
    call: Call,
  ): Promise<CallToolResult> {
    return this.#explained(async () => {
      const job = await this.#port.find(id);
      if (job?.sandbox !== this.#sandbox(call)) return unknownJob(id);
      if (action === "cancel") await job.cancel();
      return this.#toAnswer(job, call, after);
    });
  }

  /** Destroys the sandbox; `reset` also waits until it is empty. */
  end(action: "reset" | "destroy", call: Call): Promise<CallToolResult> {
    return this.#explained(async () => {
      const ended = await this.#toAnswer(await this.#submit({ kind: "destroy" }, call), call);
      const { state } = ended.structuredContent as Answer;
      if (ended.isError || state !== "finished" || action === "destroy") return ended;
      return this.#toAnswer(await this.#submit({ kind: "list" }, call), call);
    });
  }

  status(call: Call): Promise<CallToolResult> {
    return this.#explained(async () => {
      const { tenant, session = "main", scope = "tenant", profile = "default" } = this.address;
      const key = this.#sandbox(call);
      const state = await this.#port.sandbox(tenant, key);
      const about = [
        `sandbox ${key}`,
        `tenant ${tenant}`,
        `session ${session}`,
        `scope ${scope}`,
        `profile ${profile}`,
      ];
      const lines = state
        ? [
            ...(state.held ? ["a worker holds it"] : []),
            `unfinished jobs: ${state.unfinished}`,
            `last used: ${new Date(state.lastUsedMs).toISOString()}`,
            ...(state.paused ? ["the tenant is paused: nothing begins until an operator resumes it"] : []),
          ]
        : ["it was not used lately, or does not exist yet; the next call starts it"];
      const output = [...about, ...lines].join("\n");
      const answer: Answer = { state: "finished", output };
      return { content: [{ type: "text", text: output }], structuredContent: answer };
    });
  }

  /** Waits for open calls: a cancelled call must first cancel its job. */
  async finishOpenCalls(): Promise<void> {
    await Promise.allSettled(this.#open);
  }

  async #submit(request: JobRequestInput, { session, profile }: Call): Promise<FollowedJob> {
    const named = {
      ...(session === undefined ? {} : { session }),
      ...(profile === undefined ? {} : { profile }),
    };
    const order = { ...this.address, ...named, request };
    return this.#port.submit(order);
  }

  async #toAnswer(job: FollowedJob, call: Call, after?: string): Promise<CallToolResult> {
    const { answerWithinMs = defaultAnswerWithinMs, stopping } = this.#options;
    const { cancelled, notify } = call;
    using wait = new BoundedWait().endWith(cancelled, stopping).endAfter(answerWithinMs);
    const followed = await follow(job, { until: wait.signal, after, notify });
    const { output, result, after: last } = followed;
    if (result) return endedAnswer(job.id, result, output);
    if (cancelled.aborted) await job.cancel();
    if (followed.waitsFor !== undefined)
      return unfinishedAnswer(job.id, "needs-approval", { output, after: last }, followed.waitsFor);
    const status = await job.status();
    const state = status === "scheduled" || status === "waiting" ? "waiting" : "running";
    return unfinishedAnswer(job.id, state, { output, after: last });
  }

  #sandbox({ session }: Call): string {
    const { tenant, agent, scope = "tenant" as Scope } = this.address;
    return sandboxKeyOf({
      tenant: tenantId.parse(tenant),
      session: sessionName.parse(session ?? this.address.session ?? "main"),
      scope,
      agent: agentName.optional().parse(agent),
    });
  }

  async #explained(work: () => Promise<CallToolResult>): Promise<CallToolResult> {
    const answer = work().catch((error: unknown) => failedAnswer(this.#port.explain(error)));
    this.#open.add(answer);
    return answer.finally(() => this.#open.delete(answer));
  }
}

/** The job was cancelled before any of its commands ran. */
function neverBegan({ structuredContent }: CallToolResult): boolean {
  const { outcome } = structuredContent as Answer;
  return outcome?.kind === "cancelled" && outcome.reason.endsWith("before it began");
}

function unknownJob(id: string): CallToolResult {
  return failedAnswer({
    message: `no job ${id.slice(0, 100)} of this sandbox is known`,
    code: "not-found",
    advice: ["give the id from an earlier answer; ids are remembered for a day after the job's end"],
  });
}
