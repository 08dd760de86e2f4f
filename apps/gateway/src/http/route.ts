import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { Principal } from "../keys/principal.ts";

/** Who may call: anyone; holders of a key, each for its own tenant; admins. */
export type Access = "open" | "key" | "admin";

export const tags = {
  jobs: "Work for a tenant's sandbox: submitted, looked at, waited for, cancelled",
  sandbox: "Calls that run at once in the sandbox of a session, for agents' tools",
  batches: "Many jobs under one name, with results as lines",
  schedules: "Jobs that are submitted on a schedule",
  secrets: "Values that commands find in their environment and that are masked in what leaves",
  snapshots: "Workspaces as they were: kept, restored, and forked into new sandboxes",
  tenants: "What a tenant has, may use, and whether it is paused",
  tools: "Commands with parameters that an operator defines, for jobs of kind `tool` and for MCP",
  profiles: "What sandboxes are like: layers that can be changed while the fleet runs",
  fleet: "Workers, sandboxes, and jobs that ended badly",
  keys: "Keys for this API, and what administrators did",
  service: "The gateway itself: health, metrics, documents",
} as const;
export type Tag = keyof typeof tags;

export interface AnswerSpec {
  readonly about: string;
  readonly schema?: z.ZodType;
  /** Media type of an answer without a schema. */
  readonly type?: string;
}

export type Answers = Readonly<Record<number, AnswerSpec>>;

/** A handler's input: the parsed request and its principal. */
export interface Call<P, Q, H, B> {
  readonly params: P;
  readonly query: Q;
  readonly headers: H;
  readonly body: B;
  readonly principal: Principal;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Fires when the caller disconnects. */
  readonly signal: AbortSignal;
}

type DeepReadonly<T> = T extends (infer E)[]
  ? readonly DeepReadonly<E>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

type BodyOf<S extends AnswerSpec> = S extends { schema: infer Z extends z.ZodType }
  ? DeepReadonly<z.input<Z>>
  : unknown;

type OneReply<K, S extends AnswerSpec> = S extends { schema: z.ZodType }
  ? { readonly status: K; readonly headers?: Readonly<Record<string, string>>; readonly body: BodyOf<S> }
  : { readonly status: K; readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown };

/** One of the route's declared answers; or `sent`, if the handler wrote to the socket. */
export type Reply<A extends Answers> =
  | { [K in keyof A & number]: OneReply<K, A[K]> }[keyof A & number]
  | "sent";

/** One route: the source of its validation, its types and its OpenAPI entry. */
export interface RouteSpec<
  P extends z.ZodType,
  Q extends z.ZodType,
  H extends z.ZodType,
  B extends z.ZodType,
  A extends Answers,
> {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** With `:name` for each parameter. */
  readonly path: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly about?: string;
  readonly access: Access;
  /** Cost of a call against the key's rate limit; default 1. */
  readonly cost?: number;
  readonly params?: P;
  readonly query?: Q;
  /** Accepted headers, in lower case. */
  readonly headers?: H;
  /** Absent: no body. */
  readonly body?: B;
  /** `body` is one item or a list. Items are parsed one by one, so that a long list does not block other requests. */
  readonly items?: { readonly schema: z.ZodType; readonly max: number };
  /** The handler reads the request itself; then `body` only documents `application/json`. */
  readonly raw?: { readonly types: readonly string[]; readonly about: string };
  readonly answers: A;
}

/** A route of any schemas, as registration and the OpenAPI document use it. */
export interface AnyRoute extends RouteSpec<z.ZodType, z.ZodType, z.ZodType, z.ZodType, Answers> {
  readonly handle: (call: Call<unknown, unknown, unknown, unknown>) => Promise<Reply<Answers>>;
}

/** Builds a route whose handler gets only input that passed the schemas. */
export function route<
  const A extends Answers,
  P extends z.ZodType = z.ZodUndefined,
  Q extends z.ZodType = z.ZodUndefined,
  H extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUndefined,
  const R extends Reply<A> = Reply<A>,
>(
  spec: RouteSpec<P, Q, H, B, A>,
  handle: (call: Call<z.output<P>, z.output<Q>, z.output<H>, z.output<B>>) => Promise<R>,
): AnyRoute {
  // Safe: registration parses with these schemas before it calls the handler.
  return { ...spec, handle: handle as unknown as AnyRoute["handle"] };
}
