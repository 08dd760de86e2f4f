import { z } from "zod";

const bytes = z.number().int().min(0);

/**
 * How a job ended, as a value: what the tenant's command did, or what stopped it. A failure of our own machinery is a `Fault`
 * instead, except `lost`: a command had begun and its end is unknown.
 */
export const outcome = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("done") }),
  z.strictObject({ kind: z.literal("exited"), code: z.number().int().min(0).max(255) }),
  z.strictObject({ kind: z.literal("signalled"), signal: z.number().int().min(1).max(64) }),
  z.strictObject({ kind: z.literal("timed-out"), afterMs: z.number().int().min(0) }),
  z.strictObject({ kind: z.literal("out-of-memory"), limitBytes: bytes }),
  z.strictObject({
    kind: z.literal("quota-exceeded"),
    limit: z.number(),
    used: z.number(),
    unit: z
      .enum(["bytes", "entries", "disk"])
      .describe("disk: the host's disk has `used` bytes free, less than the `limit` that must stay free"),
  }),
  z.strictObject({ kind: z.literal("output-limit"), limitBytes: bytes }),
  z.strictObject({ kind: z.literal("cancelled"), reason: z.string() }),
  z.strictObject({ kind: z.literal("refused"), code: z.string(), message: z.string() }),
  z.strictObject({ kind: z.literal("lost"), message: z.string() }),
]);
export type Outcome = z.infer<typeof outcome>;
export type OutcomeKind = Outcome["kind"];

export function isSuccess(value: Outcome): boolean {
  return value.kind === "done" || (value.kind === "exited" && value.code === 0);
}

/** Reason for a program that init could not start. */
const refusedExitCodes: Readonly<Record<string, number>> = {
  "command-not-found": 127,
  "not-executable": 126,
};

/** The shell's exit code for each outcome; absent where no command ran to its end. */
export function exitCodeOf(value: Outcome): number | undefined {
  switch (value.kind) {
    case "done":
      return 0;
    case "exited":
      return value.code;
    case "signalled":
      return 128 + value.signal;
    case "timed-out":
      return 124;
    case "out-of-memory":
      return 137;
    case "quota-exceeded":
      return 153;
    case "output-limit":
      return 141;
    case "cancelled":
      return 130;
    case "refused":
      return refusedExitCodes[value.code];
    case "lost":
      return undefined;
    default:
      return assertNever(value);
  }
}

export function assertNever(value: never): never {
  throw new TypeError(`not a known case: ${JSON.stringify(value)}`);
}
