import type { SubmittedJob } from "@berth/protocol";

/** Every error of this door, by code. Faults keep their own codes. */
export const problemTable = {
  "invalid-request": { status: 400, title: "The request is invalid" },
  "malformed-json": { status: 400, title: "The body is not JSON" },
  "malformed-request": { status: 400, title: "The request is not well-formed HTTP" },
  "duplicate-header": { status: 400, title: "A header that may be given once was given twice" },
  unauthorized: { status: 401, title: "A key is needed" },
  forbidden: { status: 403, title: "This key may not do that" },
  "cross-origin": { status: 403, title: "Pages of other origins may not use this gateway" },
  "not-found": { status: 404, title: "Not found" },
  "method-not-allowed": { status: 405, title: "Method not allowed" },
  "request-timeout": { status: 408, title: "The request took too long to arrive" },
  conflict: { status: 409, title: "Conflicts with the current state" },
  "precondition-failed": { status: 412, title: "The file has changed meanwhile" },
  "body-too-large": { status: 413, title: "The body is too large" },
  "unsupported-media-type": { status: 415, title: "Unsupported media type" },
  "range-not-satisfiable": { status: 416, title: "Range not satisfiable" },
  "wrong-host": { status: 421, title: "This host name is not served by this gateway" },
  refused: { status: 422, title: "The operation was refused" },
  "idempotency-key-reused": { status: 422, title: "The same Idempotency-Key came with another request" },
  "too-many-requests": { status: 429, title: "Too many requests" },
  "too-many-streams": { status: 429, title: "Too many event streams are open" },
  "headers-too-large": { status: 431, title: "The headers are too large" },
  internal: { status: 500, title: "The gateway failed" },
  unavailable: { status: 503, title: "Temporarily unavailable" },
  "no-sandbox": { status: 503, title: "No worker can start its sandbox" },
} as const satisfies Record<string, { status: number; title: string }>;

export type ProblemCode = keyof typeof problemTable;

export interface ProblemMore {
  /** Each single problem of the input. */
  readonly problems?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error answer. May be thrown anywhere in a request; sent as `application/problem+json`. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly code: ProblemCode;
  readonly more: ProblemMore;

  constructor(code: ProblemCode, detail: string, more: ProblemMore = {}) {
    super(detail);
    this.code = code;
    this.more = more;
  }
}

export interface ProblemBody {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly problems?: readonly string[];
  readonly requestId?: string;
  readonly jobId?: string;
  readonly accepted?: "no" | "unknown";
}

export function problemBody(
  problem: {
    code: string;
    status: number;
    title: string;
    detail: string;
    problems?: readonly string[] | undefined;
    job?: SubmittedJob | undefined;
  },
  requestId?: string,
): ProblemBody {
  const { code, status, title, detail, problems, job } = problem;
  return {
    type: `urn:berth:problem:${code}`,
    title,
    status,
    code,
    detail,
    ...(problems ? { problems } : {}),
    ...(requestId ? { requestId } : {}),
    ...job,
  };
}

export const problemType = "application/problem+json";
