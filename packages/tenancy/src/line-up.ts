import type { SandboxKey } from "@berth/protocol";
import type { Admitted } from "./attempt-record.ts";
import type { Beginnings } from "./beginnings.ts";
import { takeOverDeadEpoch } from "./dead-epoch.ts";
import type { Endings } from "./endings.ts";
import type { Intake } from "./intake.ts";
import type { Line } from "./line.ts";
import type { Runs } from "./runs.ts";
import type { Sessions } from "./sessions.ts";
import type { FetchedJob, TenancyPorts } from "./tenancy-ports.ts";

export interface LineUp {
  readonly key: SandboxKey;
  readonly ports: TenancyPorts;
  readonly line: Line;
  readonly runs: Runs;
  readonly sessions: Sessions<Admitted>;
  readonly endings: Endings;
  readonly intake: Intake;
  readonly beginnings: Beginnings;
  /** After each job. */
  readonly onStep: () => void;
}

/** Lines up again the jobs that any holder took from the queue and that have not begun here. */
export async function lineUp(parts: LineUp): Promise<void> {
  const { key, ports, line, runs, sessions, endings, intake, beginnings, onStep } = parts;
  const { staleMarks } = line;
  await runs.backInLine();
  sessions.empty();
  const taken = await ports.jobs.active();
  const left = taken.filter(({ queuedId }) => !runs.has(queuedId));
  const queuedIds = taken.map(({ queuedId }) => queuedId);
  line.replace(queuedIds);
  beginnings.keepOnly(queuedIds);
  await takeOverDeadEpoch({
    ...{ left, key, ports, endings, onStep },
    read: (fetched) => intake.read(fetched),
    takeBack: (fetched) => beginnings.takeBack(fetched),
    onAgain: (fetched) => admit(parts, fetched),
    onLost: (fetched, job, result) => runs.finish({ fetched, job }, result),
  });
  line.refreshed(staleMarks);
}

/** Puts a job in its session's line. */
export async function admit({ intake, sessions }: LineUp, fetched: FetchedJob): Promise<void> {
  const job = await intake.read(fetched);
  if (job) sessions.add({ fetched, job });
}
