import { Fault, type FaultCode, isFault, type SubmittedJob } from "@berth/protocol";
import type { FastifyError } from "fastify";
import { meaningForTenants } from "../jobs/redaction.ts";
import { shownId } from "../keys/own-ids.ts";
import type { Principal } from "../keys/principal.ts";
import { Problem, type ProblemCode, problemTable } from "./problem.ts";

export interface Failure {
  readonly code: string;
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly problems?: readonly string[] | undefined;
  /** Errors of a job whose submission failed carry its id. */
  readonly job?: SubmittedJob | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** The gateway's fault, not the caller's; logged. */
  readonly ours: boolean;
}

const fastifyCodes: Readonly<Record<string, ProblemCode>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: "unsupported-media-type",
  FST_ERR_CTP_BODY_TOO_LARGE: "body-too-large",
  FST_ERR_CTP_EMPTY_JSON_BODY: "malformed-json",
  FST_ERR_CTP_INVALID_JSON_BODY: "malformed-json",
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: "malformed-request",
  FST_ERR_BAD_URL: "malformed-request",
  FST_ERR_ASYNC_CONSTRAINT: "malformed-request",
  FST_ERR_MAX_PARAM_LENGTH: "not-found",
};

/**
 * Turns any error into the caller's answer. The answer never has a stack or a library's message. Only admins see which
 * machine a fault names.
 */
export function failureOf(error: unknown, principal?: Principal): Failure {
  if (error instanceof Problem) return ofProblem(error);
  if (isFault(error, "invalid-job") || isFault(error, "invalid-schedule")) {
    return ofProblem(new Problem("invalid-request", error.message, { problems: error.context.problems }));
  }
  const fault = isFault(error) ? error : asRedisFault(error);
  if (fault) return ofFault(fault, principal);
  const { code = "", statusCode = 500, message } = error as Partial<FastifyError>;
  const known = fastifyCodes[code];
  if (known) return ofProblem(new Problem(known, message ?? ""));
  if (statusCode >= 400 && statusCode < 500) {
    return ofProblem(new Problem("malformed-request", message ?? "the request cannot be read"));
  }
  return {
    ...ofProblem(new Problem("internal", "the gateway has logged the error with this request's id")),
    ours: true,
  };
}

function ofProblem({ code, message, more }: Problem): Failure {
  const { status, title } = problemTable[code];
  return {
    code,
    status,
    title,
    detail: message,
    problems: more.problems,
    headers: more.headers ?? {},
    ours: status >= 500,
  };
}

/** Faults that the caller can fix, or that pass with time. */
const faultAnswers: Partial<Readonly<Record<FaultCode, { status: number; title: string }>>> = {
  "sandbox-full": { status: 429, title: "Too many of its jobs wait" },
  "tenant-full": { status: 429, title: "The tenant is at its limit" },
  "fleet-full": { status: 429, title: "Too many jobs wait" },
  "job-unknown": { status: 410, title: "The job is gone" },
  "job-id-taken": { status: 409, title: "The id was used before" },
  "secrets-unavailable": { status: 501, title: "This gateway has no secrets key" },
  "secret-unreadable": { status: 409, title: "The secret cannot be opened" },
  "secret-refused": { status: 409, title: "The secret was not taken" },
  "wrong-pool": { status: 409, title: "The sandbox is in another pool" },
  "unknown-tenant": { status: 404, title: "There is no such tenant" },
  "not-granted": { status: 409, title: "The tenant was not granted it" },
  "invalid-tool": { status: 400, title: "The tool is invalid" },
  "invalid-profile": { status: 400, title: "The layer is invalid" },
  "profile-changed": { status: 409, title: "The layer was changed meanwhile" },
  "payload-too-large": { status: 413, title: "The request is too large" },
  "invalid-argument": { status: 400, title: "The request is invalid" },
  "artifact-missing": { status: 410, title: "Its bytes are gone" },
  "artifact-elsewhere": { status: 409, title: "Its bytes cannot be seen from here" },
};

function ofFault(fault: Fault, principal: Principal | undefined): Failure {
  const known = faultAnswers[fault.code];
  const { status, title } = known ?? { status: 503, title: "Temporarily unavailable" };
  return {
    code: fault.code,
    status,
    title,
    detail: detailOf(fault, principal),
    job: submittedJob(fault, principal),
    headers: fault.retry ? { "retry-after": "1" } : {},
    ours: known === undefined,
  };
}

function submittedJob({ context }: Fault, principal: Principal | undefined): SubmittedJob | undefined {
  if (!("accepted" in context) || context.jobId === undefined) return undefined;
  const { jobId, accepted } = context;
  return { jobId: principal ? shownId(principal, jobId) : jobId, accepted };
}

/** The part of a fault that this caller may see. */
export function detailOf({ code, message }: Fault, principal: Principal | undefined): string {
  // Do not reveal which tenant owns the other job.
  if (code === "job-id-taken") return "another job has this id; ids are remembered for a day";
  return principal?.role === "admin" ? message : (meaningForTenants(code) ?? message);
}

/** Redis errors that no script translated. */
function asRedisFault(error: unknown): Fault | undefined {
  if (!(error instanceof Error)) return undefined;
  if (!/Connection is closed|Command timed out|ECONNREFUSED|ECONNRESET|max retries/i.test(error.message))
    return undefined;
  return new Fault(
    "redis-unreachable",
    { address: "the configured address", detail: "no answer" },
    { cause: error },
  );
}
