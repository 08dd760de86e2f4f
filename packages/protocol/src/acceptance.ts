import { z } from "zod";

/** A write that other processes act on counts once every connected replica has it, and at least this many. */
export interface Acceptance {
  readonly replicas: number;
}

/** Settings of every program that uses Redis. */
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

/** These settings as an app's configuration holds them. */
export interface AcceptanceChoice extends Acceptance {
  readonly accept: "primary" | "replicated";
}

/** Undefined: the primary's acknowledgement suffices. */
export function acceptanceOf({ accept, replicas }: AcceptanceChoice): Acceptance | undefined {
  return accept === "replicated" ? { replicas } : undefined;
}
