import {
  abortReason,
  type ExecLimits,
  type ExecRequest,
  type ExecResult,
  type Outcome,
  type OutputStream,
  type SandboxProfile,
} from "@berth/protocol";
import { argvOf, execEnvironment, type Locale } from "../exec-environment.ts";
import { measuresOf } from "../exec-measures.ts";
import { outcomeOf, type Stop } from "../exec-outcome.ts";
import type { Link, LinkEnd } from "../link.ts";
import { FilteredOutput } from "../output/filtered-output.ts";
import { HeadTailBuffer } from "../output/head-tail-buffer.ts";
import type { ExecOptions } from "../port.ts";
import type { QuotaExceeded, QuotaGuard } from "../quota-guard.ts";

/** How long after its own limits a command may stay silent before its container is taken for hung. */
const silenceMs = 15_000;
const unkillableMs = 5_000;

export interface CommandRun {
  readonly link: Link;
  readonly request: ExecRequest;
  readonly profile: SandboxProfile;
  /** The image's ENV. */
  readonly imageEnv: readonly string[];
  /** The worker's own. */
  readonly locale: Locale | undefined;
  readonly limits: ExecLimits;
  readonly keptOutput: SandboxProfile["keptOutput"];
  /** Set when the workspace was over its limits before the command began: it may then make no file larger. */
  readonly full: QuotaExceeded | undefined;
  readonly quota: Pick<QuotaGuard, "watch">;
  /** The outcome of a command whose link broke. */
  readonly brokenOutcome: (end: LinkEnd) => Promise<Outcome>;
  /** init has not ended the command although the worker asked it to. */
  readonly onHung: (waitedMs: number) => void;
}

/** Runs one command over a link. Throws what the output's consumer threw. */
export async function runCommand(run: CommandRun, options: ExecOptions): Promise<ExecResult> {
  const { link, request, profile, limits, full } = run;
  const argv = argvOf(request);
  const kept = new HeadTailBuffer(limits.keptBytes, run.keptOutput);
  let stop: Stop | undefined;
  let consumerError: { error: unknown } | undefined;
  const stopFor = (why: Stop, graceMs: number) => {
    stop ??= why;
    execution.kill(graceMs);
  };
  const take = (stream: OutputStream, bytes: Buffer): void | Promise<void> => {
    kept.add(stream, bytes);
    if (kept.totalBytes > limits.outputBytes) {
      stopFor({ kind: "output-limit", limitBytes: limits.outputBytes }, 0);
      return undefined;
    }
    if (!options.onOutput || consumerError) return undefined;
    try {
      return options.onOutput({ stream, bytes })?.catch(onConsumerError);
    } catch (error) {
      return onConsumerError(error);
    }
  };
  const filtered = options.filter && new FilteredOutput(options.filter, take);
  const execution = link.exec({
    argv,
    env: execEnvironment(run.imageEnv, { locale: run.locale, profile, given: options.env, request }),
    cwd: request.cwd === "" ? profile.workdir : request.cwd,
    stdin: options.stdin ?? (typeof request.stdin === "string" ? Buffer.from(request.stdin) : request.stdin),
    limits,
    killBackground: request.background === "kill",
    noGrowth: full !== undefined,
    onStarted: options.onStarted,
    onOutput: filtered ? (stream, bytes) => filtered.push(stream, bytes) : take,
  });
  const onConsumerError = (error: unknown): undefined => {
    consumerError ??= { error };
    execution.kill(0);
  };
  const onAbort = () => stopFor({ kind: "cancelled", reason: abortReason(options.signal) }, limits.graceMs);
  options.signal?.addEventListener("abort", onAbort, { once: true });
  const unwatch = run.quota.watch((exceeded) => stopFor(exceeded, 0));
  // A kill ends a command that only waits for its consumer. If it does not end then either, init is at fault.
  let unkillable: NodeJS.Timeout | undefined;
  const onSilence = () => {
    execution.kill(0);
    unkillable = setTimeout(() => run.onHung(silenceMs), unkillableMs);
  };
  const { timeoutMs, graceMs, drainMs } = limits;
  const hung = timeoutMs === 0 ? undefined : setTimeout(onSilence, timeoutMs + graceMs + drainMs + silenceMs);
  let background = false;
  try {
    const exit = await execution.end;
    await filtered?.end();
    background = exit.kind !== "broken" && exit.kind !== "refused" && exit.background > 0;
    if (consumerError) throw consumerError.error;
    const facts = { limits: profile.limits, timeoutMs, program: argv[0] ?? "", full };
    return {
      ...measuresOf(exit),
      outcome: exit.kind === "broken" ? await run.brokenOutcome(exit.end) : outcomeOf(exit, stop, facts),
      output: kept.finish(),
    };
  } finally {
    filtered?.stop();
    clearTimeout(hung);
    clearTimeout(unkillable);
    unwatch({ background });
    options.signal?.removeEventListener("abort", onAbort);
  }
}
