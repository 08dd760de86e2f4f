import { isSuccess } from "@berth/protocol";
import { type Arguments, command } from "../command.ts";
import { UsageError } from "../complaint.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { knownJob } from "../known-job.ts";
import { endOf, failure } from "../run-job.ts";
import { counted } from "../terminal/quantities.ts";
import { tenantName } from "../values.ts";

const options = {
  yes: { type: "boolean", about: "needed: the files cannot be brought back" },
} as const;

export const tenantDestroy = command({
  name: "tenant destroy",
  summary: "end every sandbox of a tenant and remove its files",
  positionals: ["TENANT"],
  about: "Each sandbox is ended after the jobs that already wait for it. Later jobs find an empty workspace.",
  examples: [{ line: "berth tenant destroy acme --yes", note: "" }],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const tenant = tenantName(positionals[0] ?? "");
  if (!values.yes)
    throw new UsageError(`this removes all files of ${tenant}`, [
      `berth tenant destroy ${tenant} --yes, if that is meant`,
    ]);
  const ids = await (await context.door()).tenants.destroy(tenant);
  for (const id of ids) {
    const job = await knownJob(context, id);
    const { outcome } = await endOf(context, job, job.result());
    if (!isSuccess(outcome)) throw failure(outcome);
  }
  await context.terminal.answer(
    { tenant, destroyed: ids.length },
    () => `${counted(ids.length, "sandbox")} of ${tenant} destroyed`,
  );
  return exitCodes.ok;
}
