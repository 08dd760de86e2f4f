import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { notFound } from "../not-found.ts";

const options = {} as const;

export const deadRm = command({
  name: "dead rm",
  summary: "remove dead letters",
  positionals: ["JOB..."],
  examples: [{ line: "berth dead rm JOB", note: "looked at, and not worth another run" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const { deadLetters } = await context.door();
  for (const id of positionals)
    if (!(await deadLetters.remove(id))) throw notFound(`dead letter of ${id}`, "berth dead ls");
  await context.terminal.answer({ removed: positionals }, () => `${positionals.length} removed`);
  return exitCodes.ok;
}
