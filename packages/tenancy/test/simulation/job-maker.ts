import { isRepeatable, type JobRequestInput, job as jobSchema } from "@berth/protocol";
import type { Random } from "./random.ts";
import type { Settings } from "./settings.ts";
import type { CommandPlan, SimJob } from "./sim-job.ts";

const command = { kind: "exec", command: "effect" } as const;
const requests: readonly (JobRequestInput | "nonsense")[] = [
  ...[command, command, command, command],
  { kind: "read", path: "a" },
  { kind: "write", path: "a", content: "b" },
  { kind: "steps", steps: [command, command] },
  { kind: "destroy" },
  "nonsense",
];

/** A job of some session and kind: short or long, safe to repeat or not, sometimes one that cannot be read. */
export function makeJob(number: number, nowMs: number, random: Random, settings: Settings): SimJob {
  const id = `job-${number}`;
  const key = random.pick(settings.keys);
  const session = `s${random.between(1, settings.sessions)}`;
  const request = random.pick(requests);
  const staged = random.chance(0.25) ? ({ staged: random.chance(0.1) ? "gone" : "there" } as const) : {};
  const base = {
    ...{ id, key, session, ...staged },
    artifact: random.chance(0.15),
    breaks: random.chance(0.02),
  };
  if (request === "nonsense") return { ...base, data: request, commands: [], repeatable: false };
  const job = jobSchema.parse({
    version: 1,
    ...{ id, tenant: key, session, request },
    idempotent: random.chance(0.2),
    ...(random.chance(0.2) ? { retry: { attempts: random.between(2, 3), backoffMs: 300, jitter: 0 } } : {}),
    ...(random.chance(0.1) ? { deadlineAtMs: nowMs + random.between(0, settings.leaseMs) } : {}),
  });
  const commands = { destroy: 0, steps: 2 }[request.kind as string] ?? 1;
  return {
    ...base,
    data: job,
    job,
    commands: Array.from({ length: commands }, () => planCommand(id, random, settings)),
    repeatable: isRepeatable(job.request, job.idempotent),
  };
}

function planCommand(id: string, random: Random, { leaseMs }: Settings): CommandPlan {
  const runMs = random.chance(0.15) ? random.between(0, leaseMs * 2.5) : random.between(1, 300);
  const chunks = Array.from({ length: random.pick([0, 0, 1, 3, 8]) }, (_, index) => `${id}:${index} `);
  return { runMs, code: random.chance(0.2) ? 1 : 0, chunks };
}
