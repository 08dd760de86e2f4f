import { z } from "zod";

/** Steps that other processes act on count once every connected replica has them, and at least this many. */
export interface Acceptance {
  readonly replicas: number;
}

/** Of every program that uses Redis. */
export const acceptanceSettings = {
  BERTH_ACCEPT: z
    .enum(["primary", "replicated"])
    .default("primary")
    .describe(
      "when a job counts as accepted, taken or begun: when the primary has it, or when its replicas have it too; the same for all programs of a fleet",
    ),
  BERTH_REPLICAS: z.coerce
    .number()
    .int()
    .nonnegative()
    .default(1)
    .describe(
      "with BERTH_ACCEPT=replicated: replicas that have to acknowledge at least; with 0 a primary without any accepts alone",
    ),
};

/** Their values, as an app's configuration has them. */
export interface AcceptanceChoice extends Acceptance {
  readonly accept: "primary" | "replicated";
}

/** Undefined where the primary's word is enough. */
export function acceptanceOf({ accept, replicas }: AcceptanceChoice): Acceptance | undefined {
  return accept === "replicated" ? { replicas } : undefined;
}
