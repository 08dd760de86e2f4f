import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { notFound } from "../not-found.ts";

const options = {} as const;

export const deadRedrive = command({
  name: "dead redrive",
  summary: "run dead letters' jobs again",
  positionals: ["JOB..."],
  about: "Each under a new id, which is printed. The first run's result and events stay.",
  examples: [{ line: "berth dead redrive JOB", note: "JOB-redrive-1" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const { deadLetters } = await context.door();
  const jobs: { from: string; id: string }[] = [];
  for (const from of positionals) {
    const id = await deadLetters.redrive(from);
    if (id === undefined) throw notFound(`dead letter of ${from}`, "berth dead ls");
    jobs.push({ from, id });
  }
  await context.terminal.answer({ jobs }, () => jobs.map(({ id }) => id).join("\n"));
  return exitCodes.ok;
}
