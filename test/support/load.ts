import type { JobOrder } from "@berth/client";
import { isRepeatable, jobRequest } from "@berth/protocol";
import { ledgered } from "./ledger.ts";

export interface LoadOptions {
  readonly seed: number;
  readonly tenants: number;
  /** Of each tenant. */
  readonly sessions: number;
  readonly jobs: number;
  /** Longest that a command sleeps. */
  readonly sleepMs?: number;
}

/** A job as it is ordered, and what a history checker must know of it. */
export interface PlannedJob {
  readonly order: JobOrder;
  readonly repeatable: boolean;
  readonly mark?: string;
  readonly unordered?: boolean;
}

/** The same seed makes the same jobs: a mix of tenants, sessions and kinds, safe to repeat and not. */
export function* plannedLoad(options: LoadOptions): Generator<PlannedJob> {
  const { tenants, sessions, jobs, sleepMs = 60 } = options;
  const pick = seeded(options.seed);
  for (let index = 0; index < jobs; index++) {
    const tenant = `tenant-${pick(tenants)}`;
    const session = `s${pick(sessions)}`;
    const mark = `${options.seed}.${index}`;
    const command = ledgered(mark, `sleep ${(pick(sleepMs) / 1_000).toFixed(3)}; echo ${index}`);
    const idempotent = pick(2) === 0;
    const order = { tenant, session, idempotent, request: requestOf(pick(10), command, mark) };
    yield plan(order, order.request.kind === "write" || order.request.kind === "list" ? undefined : mark);
  }
}

/** A command that writes itself down. */
export function exec(tenant: string, mark: string, body = "true", more: Partial<JobOrder> = {}): PlannedJob {
  return plan({ ...more, tenant, request: { kind: "exec", command: ledgered(mark, body) } }, mark);
}

/** What a history checker must know of an order that a test made itself. */
export function plan(order: JobOrder, mark: string | undefined): PlannedJob {
  const { request, idempotent = false, retry, priority, delayMs, runAtMs } = order;
  const repeatable = retry !== undefined || isRepeatable(jobRequest.parse(request), idempotent);
  // Jobs that wait elsewhere, or have a priority, are promised no order.
  const unordered = [retry, priority, delayMs, runAtMs].some((one) => one !== undefined);
  return { order, repeatable, unordered, ...(mark === undefined ? {} : { mark }) };
}

function requestOf(kind: number, command: string, name: string): JobOrder["request"] {
  if (kind < 6) return { kind: "exec", command };
  if (kind === 6) return { kind: "code", language: "sh", source: command };
  if (kind === 7) return { kind: "write", path: `files/${name}`, content: name };
  if (kind === 8) return { kind: "list", path: "" };
  const write = { kind: "write", path: `files/${name}`, content: name } as const;
  return { kind: "steps", steps: [write, { kind: "exec", command }] };
}

/** Mulberry32: whole numbers below a limit, the same ones for the same seed. */
export function seeded(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}
