import { Complaint } from "./complaint.ts";
import type { Context } from "./context.ts";
import type { DoorJob } from "./door.ts";

export async function knownJob(context: Context, id: string): Promise<DoorJob> {
  const job = await (await context.door()).job(id);
  if (job) return job;
  throw new Complaint(`no job ${id} is known`, {
    code: "not-found",
    advice: ["ids are remembered for a day after the job's end; `berth ps` lists those that have not ended"],
  });
}
