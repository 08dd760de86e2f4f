import { isSuccess, type Outcome } from "@berth/protocol";
import type { ResultLine } from "./result-line.ts";

const slowestKept = 20;
const failuresKept = 30;
/** Bytes kept from the end of a failed job's output. */
const tailLength = 2_000;

export interface TenantCount {
  succeeded: number;
  readonly failed: Map<string, number>;
  cpuMs: number;
}

export interface FailedJob extends Pick<ResultLine, "id" | "line" | "tenant" | "session"> {
  readonly outcome: string;
  /** The end of its output, or the reason why it did not run. */
  readonly tail: string;
}

export interface SlowJob extends Pick<ResultLine, "id" | "line" | "tenant" | "session"> {
  readonly outcome: string;
  readonly wallMs: number;
  readonly waitMs: number | undefined;
}

/** Counts a batch's results for the summary and the report. Keeps three numbers per job. */
export class BatchStatistics {
  readonly tenants = new Map<string, TenantCount>();
  readonly failedBy = new Map<string, number>();
  readonly outcomes = new Map<string, number>();
  readonly wallMs: number[] = [];
  readonly waitMs: number[] = [];
  /** When each job ended, and whether it succeeded. */
  readonly ends: { readonly atMs: number; readonly ok: boolean }[] = [];
  readonly slowest: SlowJob[] = [];
  readonly failures: FailedJob[] = [];
  /** When the batch's first job was queued. */
  firstAtMs: number | undefined;
  finished = 0;
  failed = 0;

  add(line: ResultLine): void {
    const { outcome, timing } = line;
    const ok = isSuccess(outcome);
    const name = outcomeName(outcome);
    this.finished++;
    count(this.outcomes, outcome.kind);
    const tenant = this.#tenant(line.tenant);
    tenant.cpuMs += timing.cpuMs;
    if (ok) tenant.succeeded++;
    else {
      this.failed++;
      count(tenant.failed, name);
      count(this.failedBy, name);
      this.#keepFailure(line, name);
    }
    const { startedAtMs, queuedAtMs, finishedAtMs } = timing;
    if (queuedAtMs !== undefined) this.firstAtMs = Math.min(this.firstAtMs ?? queuedAtMs, queuedAtMs);
    if (finishedAtMs !== undefined) this.ends.push({ atMs: finishedAtMs, ok });
    // A job that never started took no time and has no waiting time.
    if (startedAtMs === undefined) return;
    const waitMs = queuedAtMs === undefined ? undefined : Math.max(0, startedAtMs - queuedAtMs);
    this.wallMs.push(timing.wallMs);
    if (waitMs !== undefined) this.waitMs.push(waitMs);
    this.#keepSlow(line, { outcome: name, waitMs });
  }

  #tenant(name: string): TenantCount {
    const known = this.tenants.get(name);
    if (known) return known;
    const fresh = { succeeded: 0, failed: new Map<string, number>(), cpuMs: 0 };
    this.tenants.set(name, fresh);
    return fresh;
  }

  #keepFailure({ id, line, tenant, session, value, text, outcome }: ResultLine, name: string): void {
    if (this.failures.length >= failuresKept) return;
    const output = text ?? `${value.stdout ?? ""}${value.stderr ?? ""}`;
    const tail = output === "" && "message" in outcome ? outcome.message : output.slice(-tailLength);
    this.failures.push({ id, line, tenant, session, outcome: name, tail });
  }

  #keepSlow(
    { id, line, tenant, session, timing: { wallMs } }: ResultLine,
    more: Pick<SlowJob, "outcome" | "waitMs">,
  ): void {
    const least = this.slowest.at(-1);
    if (this.slowest.length >= slowestKept && least && least.wallMs >= wallMs) return;
    const at = this.slowest.findIndex((slow) => slow.wallMs < wallMs);
    this.slowest.splice(at === -1 ? this.slowest.length : at, 0, {
      id,
      line,
      tenant,
      session,
      wallMs,
      ...more,
    });
    this.slowest.length = Math.min(this.slowest.length, slowestKept);
  }
}

/** `exited 3`, `timed-out`, … */
export function outcomeName(outcome: Outcome): string {
  return outcome.kind === "exited" ? `exited ${outcome.code}` : outcome.kind;
}

/** The nearest-rank percentile; undefined for an empty list. */
export function percentileOf(values: readonly number[], percent: number): number | undefined {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)];
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
