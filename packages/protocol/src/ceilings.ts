import { z } from "zod";
import { bytesField, countField } from "./quantities.ts";

const mebibyte = 1024 ** 2;
const whole = (number: z.ZodNumber) => number.int();

/**
 * Limits of one tenant; 0 is none. The layers `fleet` and `tenant.ID` change them, and a tenant's value replaces the fleet's. The
 * script that accepts the work compares them atomically, so any number of producers together stays within them.
 */
export const ceilings = z.strictObject({
  waitingJobs: countField(whole)
    .default(100_000)
    .describe("jobs that have not ended, those that wait for their time included"),
  waitingBytes: bytesField(whole)
    .default(512 * mebibyte)
    .describe("bytes of those jobs' requests in Redis, and of requests that are beside the queue"),
  sandboxes: countField(whole).default(10_000).describe("sandboxes that it has used and not destroyed"),
  workspaceBytes: bytesField(whole)
    .default(20 * 1024 * mebibyte)
    .describe(
      "bytes of its sandboxes' workspaces, as their workers measured them last; past it only jobs that cannot fill them are accepted",
    ),
  resultBytes: bytesField(whole)
    .default(512 * mebibyte)
    .describe("bytes of its ended jobs' events and results in Redis, until they expire"),
  heldSandboxes: countField(whole).default(64).describe("sandboxes that workers hold at the same time"),
  schedules: countField(whole).default(1_000).describe("schedules"),
  batches: countField(whole).default(100).describe("batches that are not over"),
  webhooks: countField(whole)
    .default(1_000)
    .describe("calls of webhooks that wait; past it batches with a webhook are refused"),
  deadLetters: countField(whole).default(1_000).describe("dead letters; past it the tenant's oldest goes"),
  streams: countField(whole).default(256).describe("event streams that are open at one gateway"),
  waits: countField(whole)
    .default(256)
    .describe("jobs whose ends requests wait for (`?wait=`, `/v1/sandbox/*`, MCP) at one gateway"),
  snapshots: countField(whole).default(100).describe("snapshots"),
  snapshotBytes: bytesField(whole)
    .default(20 * 1024 * mebibyte)
    .describe("bytes of its snapshots' files, also where they share blocks with others"),
  dailyJobs: countField(whole)
    .default(0)
    .describe("jobs of one day of UTC: those that ended on it, and those that have not ended"),
  dailyCpuSeconds: countField(whole)
    .default(0)
    .describe("cpu seconds of one day; what runs already is not stopped"),
  dailyBytes: bytesField(whole).default(0).describe("bytes in and out of one day, and of requests that wait"),
  bodyBytes: bytesField(whole)
    .default(64 * mebibyte)
    .describe("bytes of request bodies that one gateway holds at the same time"),
});
export type Ceilings = z.infer<typeof ceilings>;
export type CeilingName = keyof Ceilings;
export type CeilingChanges = { readonly [name in CeilingName]?: Ceilings[name] | undefined };

export const defaultCeilings: Ceilings = ceilings.parse({});
export const ceilingNames = Object.keys(ceilings.shape) as readonly CeilingName[];
export const ceilingName = z.enum(ceilingNames as [CeilingName, ...CeilingName[]]);

/** The ceilings that a layer changes; the others stay as in the layer above. */
export const ceilingChanges = z.strictObject(
  Object.fromEntries(
    Object.entries(ceilings.shape).map(([name, schema]) => [name, schema.unwrap().optional()]),
  ),
) as unknown as z.ZodType<CeilingChanges, { readonly [name in CeilingName]?: number | string | undefined }>;

/** Later layers win. */
export function ceilingsOf(...layers: readonly (CeilingChanges | undefined)[]): Ceilings {
  const changes = layers.flatMap((layer) => Object.entries(layer ?? {}));
  return {
    ...defaultCeilings,
    ...Object.fromEntries(changes.filter(([, value]) => value !== undefined)),
  };
}

interface CeilingText {
  readonly what: string;
  readonly advice: string;
}

/** What the tenant has too much of, and what it can do. */
export const ceilingTexts: { readonly [name in CeilingName]: CeilingText } = {
  waitingJobs: { what: "jobs that have not ended", advice: "wait until some have ended, or cancel some" },
  waitingBytes: {
    what: "bytes of requests that wait",
    advice: "wait until some have ended, or send smaller requests",
  },
  sandboxes: { what: "sandboxes", advice: "destroy some, or use existing sessions and agents" },
  workspaceBytes: {
    what: "bytes in workspaces",
    advice: "remove files, or destroy sandboxes that are not needed",
  },
  resultBytes: {
    what: "bytes of results",
    advice: "wait until some expire, a day after their job's end, or let jobs print less",
  },
  heldSandboxes: { what: "sandboxes that are held", advice: "wait until one is given up" },
  schedules: { what: "schedules", advice: "remove some" },
  batches: { what: "batches that are not over", advice: "wait until one is over, or cancel one" },
  webhooks: {
    what: "calls of webhooks that wait",
    advice: "wait until some are made, or leave the webhook out",
  },
  deadLetters: { what: "dead letters", advice: "run them again, or remove them" },
  streams: { what: "open event streams", advice: "close some, or read several jobs in one" },
  waits: {
    what: "jobs waited for",
    advice: "wait for fewer at once, or read events or batches instead",
  },
  snapshots: { what: "snapshots", advice: "remove some, or give them a ttl" },
  snapshotBytes: { what: "bytes of snapshots", advice: "remove some, or make smaller ones" },
  dailyJobs: { what: "jobs today", advice: "submit it after the day's end" },
  dailyCpuSeconds: { what: "cpu seconds used today", advice: "submit it after the day's end" },
  dailyBytes: { what: "bytes in and out today", advice: "submit it after the day's end" },
  bodyBytes: { what: "bytes of request bodies", advice: "send fewer requests side by side" },
};
