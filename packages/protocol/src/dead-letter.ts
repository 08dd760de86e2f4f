import { z } from "zod";

/** Why a job is kept as a dead letter. `unreadable`: it could not be parsed. `fault`: Berth itself refused it. */
export const deadReason = z.enum(["unreadable", "fault", "lost", "retries-exhausted"]);
export type DeadReason = z.infer<typeof deadReason>;
