import { faultCodes } from "@berth/protocol";
import type { PastSpan, SpanAttributes, Tracing } from "@berth/service";
import type { AttemptRecord, TenancyEvent } from "@berth/tenancy";

/** Makes spans of attempts that are over, from their reports: the worker measures nothing for a trace alone. */
export function jobSpans(tracing: Tracing, worker: string): (event: TenancyEvent) => void {
  return (event) => {
    if (event.event !== "job.finished" && event.event !== "job.retrying") return;
    tracing.record(attemptSpan(event, worker), event.trace);
  };
}

/** An attempt from the queue to its published end, with its stages inside. */
export function attemptSpan(record: AttemptRecord, worker: string): PastSpan {
  const { publishedAtMs, publishMs, runMs, startMs, queueMs, kind, cold } = record;
  const endedAtMs = publishedAtMs - publishMs;
  const begunAtMs = endedAtMs - runMs;
  const openingAtMs = begunAtMs - startMs;
  const queuedAtMs = openingAtMs - queueMs;
  const error = errorOf(record);
  const begun = runMs > 0;
  // For a job that a dead worker began, the report has only its age.
  const waited = begun || record.outcome !== "lost";
  return {
    name: `berth.job ${kind}`,
    kind: "consumer",
    startMs: queuedAtMs,
    endMs: publishedAtMs,
    attributes: attributesOf(record, worker),
    error,
    inside: [
      ...(waited ? [stage("berth.queue", queuedAtMs, openingAtMs)] : []),
      ...(cold
        ? [{ ...stage("berth.sandbox.start", openingAtMs, begunAtMs), error: begun ? undefined : error }]
        : []),
      ...(begun ? [{ ...stage("berth.run", begunAtMs, endedAtMs), attributes: endOf(record), error }] : []),
      stage("berth.publish", endedAtMs, publishedAtMs),
    ],
  };
}

function stage(name: string, startMs: number, endMs: number): PastSpan {
  return { name, kind: "internal", startMs, endMs };
}

/** The fleet's own failure, if any. A command that exits with 1, or a refused request, is not an error of the fleet. */
function errorOf({ outcome, refusal }: AttemptRecord): string | undefined {
  if (outcome === "lost") return "lost";
  return faultCodes.find((code) => code === refusal);
}

function attributesOf(record: AttemptRecord, worker: string): SpanAttributes {
  const { jobId, tenant, key, attempt, epoch, cold } = record;
  return {
    ...endOf(record),
    "berth.job.id": jobId,
    "berth.tenant": tenant,
    "berth.sandbox.key": key,
    "berth.sandbox.cold": cold,
    "berth.worker.id": worker,
    "berth.epoch": epoch,
    "berth.attempt": attempt,
  };
}

function endOf({ kind, outcome, exitCode, refusal }: AttemptRecord): SpanAttributes {
  return {
    "berth.kind": kind,
    "berth.outcome": outcome,
    ...(exitCode === undefined ? {} : { "berth.exit_code": exitCode }),
    ...(refusal === undefined ? {} : { "berth.refusal": refusal }),
  };
}
