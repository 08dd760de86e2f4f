import { z } from "zod";
import { withGivenNames } from "./given-names.ts";
import { agentName, scheduleId, sessionName, tenantId } from "./ids.ts";
import { type JobInput, job } from "./job.ts";
import { problemsOf } from "./problems.ts";

/** What a schedule submits each time: a job without the fields of a single run. */
export type ScheduledOrder = Omit<JobInput, "version" | "id" | "inbox" | "attempt" | "deadlineAtMs">;

const notInAnOrder = ["version", "id", "inbox", "attempt", "deadlineAtMs"] as const;
const storedInstead = "a schedule has no secrets of its own; its jobs get those of the tenant's store";
/** All schedules share one hash, so a large request belongs in a file of the workspace. */
const maxOrderBytes = 64 * 1024;
/** 2039: BullMQ multiplies due times by 4,096, and a double is exact up to here. */
export const latestDueMs = Math.floor(Number.MAX_SAFE_INTEGER / 4_096);
const timeMs = z.number().int().min(0).max(latestDueMs);

const scheduledOrder = z
  .custom<ScheduledOrder>((value) => typeof value === "object" && value !== null && !Array.isArray(value), {
    error: "an order is an object",
  })
  .superRefine((order, context) => {
    for (const name of notInAnOrder) {
      if (name in order) context.addIssue({ code: "custom", path: [name], message: "is set by the fleet" });
    }
    if ("secrets" in order) context.addIssue({ code: "custom", path: ["secrets"], message: storedInstead });
    if (JSON.stringify(order).length > maxOrderBytes) {
      context.addIssue({ code: "custom", message: `an order has at most ${maxOrderBytes} bytes` });
    }
    const parsed = job.safeParse({ ...order, version: 1, id: "template", attempt: 1 });
    for (const message of parsed.success ? [] : problemsOf(parsed.error)) {
      context.addIssue({ code: "custom", message });
    }
  })
  .transform(withIds);

/** With ids, and the given names beside them. */
function withIds(order: ScheduledOrder): ScheduledOrder {
  const { tenant, session, agent } = order;
  return {
    ...withGivenNames(order),
    tenant: tenantId.parse(tenant),
    ...(session === undefined ? {} : { session: sessionName.parse(session) }),
    ...(agent === undefined ? {} : { agent: agentName.parse(agent) }),
  };
}

/** When and what. Exactly one of `cron` and `everyMs`. The ledger parses the expression. */
export const scheduleSpec = z
  .strictObject({
    id: scheduleId.describe("names the schedule; its jobs are <id>@<due time in ms>"),
    cron: z
      .string()
      .max(256)
      .refine((text) => [5, 6].includes(text.trim().split(/\s+/).length), {
        error: "a cron expression has 5 fields, or 6 with seconds first",
      })
      .optional(),
    everyMs: z.number().int().min(100).max(31_622_400_000).optional().describe("a fixed interval instead"),
    timeZone: z
      .string()
      .refine(isTimeZone, { error: "not a time zone of the IANA database, such as Europe/Berlin" })
      .default("UTC"),
    order: scheduledOrder,
    catchUp: z
      .enum(["skip", "once", "all"])
      .default("skip")
      .describe("runs that were missed: none of them, one for all, or each, the newest hundred at most"),
    paused: z.boolean().optional().describe("when absent: as it is, and not paused when it is new"),
    startAtMs: timeMs.optional().describe("no run before; with everyMs, the first one"),
    endAtMs: timeMs.optional().describe("no run after"),
    maxRuns: z.number().int().min(1).optional(),
  })
  .refine(({ cron, everyMs }) => (cron === undefined) !== (everyMs === undefined), {
    error: "either cron or everyMs, not both",
  })
  .refine(({ id, order }) => !id.includes(".") || id.startsWith(`${order.tenant}.`), {
    path: ["id"],
    error: "what is before the dot is the tenant of the schedule's order",
  });
export type ScheduleSpec = z.infer<typeof scheduleSpec>;
export type ScheduleInput = z.input<typeof scheduleSpec>;

function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** A job's start: after a delay, or at a time. */
export const dueTime = z
  .strictObject({ delayMs: timeMs.optional(), runAtMs: timeMs.optional() })
  .refine(({ delayMs, runAtMs }) => delayMs === undefined || runAtMs === undefined, {
    error: "either delayMs or runAtMs, not both",
  });
export type DueTime = z.infer<typeof dueTime>;
