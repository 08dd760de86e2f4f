import { type ProblemCode, problemTable, problemType } from "../http/problem.ts";
import type { AnyRoute } from "../http/route.ts";

type Json = Record<string, unknown>;

/** Error answers that any route may give, by status. Each is described once, among the components. */
const refusals = {
  400: ["BadRequest", "malformed-request", "or it is invalid; `problems` lists every reason"],
  401: ["Unauthorized", "unauthorized", "or it is not good any more"],
  403: ["Forbidden", "forbidden", "or the request comes from a page of another origin"],
  404: ["NotFound", "not-found", "or it is another tenant's"],
  413: ["TooLarge", "body-too-large", "for this key"],
  415: ["UnsupportedMediaType", "unsupported-media-type", "or it is compressed"],
  429: ["TooManyRequests", "too-many-requests", "or too many jobs wait; `Retry-After` has the time to wait"],
} as const satisfies Record<number, readonly [name: string, code: ProblemCode, more: string]>;

type Status = keyof typeof refusals;

/** References to the errors that a route may answer. */
export function refusalsOf(route: AnyRoute): Json {
  const guarded: Status[] = route.access === "open" ? [] : [401, 403, 429];
  const body: Status[] = route.body || route.raw ? [413, 415] : [];
  const params: Status[] = route.params ? [404] : [];
  const statuses: Status[] = [400, ...guarded, ...params, ...body];
  return Object.fromEntries(
    statuses.map((status) => [status, { $ref: `#/components/responses/${refusals[status][0]}` }]),
  );
}

export function refusalComponents(problem: Json): Json {
  return Object.fromEntries(
    Object.values(refusals).map(([name, code, more]) => [
      name,
      {
        description: `${problemTable[code].title}, ${more}`,
        content: { [problemType]: { schema: problem } },
      },
    ]),
  );
}
