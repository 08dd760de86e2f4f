import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import type { Door, SandboxView, Scale, WorkerRecord } from "../door.ts";
import { exitCodes } from "../exit-codes.ts";
import { sandboxTable, scaleLine, workerTable } from "../fleet-tables.ts";
import { showLive } from "../terminal/live-view.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { durationMs, wholeNumber } from "../values.ts";

const options = {
  once: { type: "boolean", about: "print it once and exit; the default when stdout is no terminal" },
  every: { type: "string", value: "TIME", about: "how often it is drawn (1s)" },
  limit: { type: "string", value: "N", about: "sandboxes that are shown (20)" },
} as const;

export const fleet = command({
  name: "fleet",
  summary: "workers and sandboxes, live",
  positionals: [],
  about: "Redraws like top; q or Ctrl-C quits.",
  examples: [
    { line: "berth fleet", note: "" },
    { line: "berth fleet --once", note: "as it is now" },
    { line: "berth fleet --json | jq .scale.freeSlots", note: "for a program" },
  ],
  options,
  run,
});

interface Snapshot {
  readonly scale: Scale;
  readonly workers: readonly WorkerRecord[];
  readonly sandboxes: readonly SandboxView[];
}

async function run({ values }: Arguments<typeof options>, context: Context): Promise<number> {
  const door = await context.door();
  const { terminal } = context;
  const limit = values.limit === undefined ? 20 : wholeNumber("--limit", values.limit, 0);
  const everyMs = values.every === undefined ? 1_000 : durationMs("--every", values.every);
  if (values.once || terminal.json || terminal.columns === undefined) {
    const snapshot = await look(door, limit);
    await terminal.answer(snapshot, () => page(snapshot, terminal));
    return exitCodes.ok;
  }
  await showLive(context, everyMs, async () => {
    const snapshot = await look(door, limit);
    return `${terminal.style("bold", door.address)}   ${new Date().toLocaleTimeString()}   q quits\n${page(snapshot, terminal)}`;
  });
  return exitCodes.ok;
}

async function look(door: Door, limit: number): Promise<Snapshot> {
  const [scale, workers, sandboxes] = await Promise.all([
    door.scale(),
    door.workers(),
    limit === 0 ? [] : door.sandboxes({ limit }),
  ]);
  return { scale, workers, sandboxes };
}

function page({ scale, workers, sandboxes }: Snapshot, terminal: Terminal): string {
  const line = terminal.style("bold", scaleLine(scale));
  return [line, "", workerTable(workers, terminal), "", sandboxTable(sandboxes, terminal)].join("\n");
}
