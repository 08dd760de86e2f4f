import { z } from "zod";

/** Why a job is kept to be looked at. `unreadable`: nobody could parse it. `fault`: our own machinery refused it. */
export const deadReason = z.enum(["unreadable", "fault", "lost", "retries-exhausted"]);
export type DeadReason = z.infer<typeof deadReason>;
