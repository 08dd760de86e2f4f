import { byteSize, type SnapshotView } from "@berth/protocol";
import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";

import { exitCodes } from "../exit-codes.ts";
import { spanText } from "../terminal/quantities.ts";
import { table } from "../terminal/table.ts";
import { tenantName } from "../values.ts";

const options = {} as const;

export const snapshotLs = command({
  name: "snapshot ls",
  summary: "list a tenant's snapshots",
  positionals: ["TENANT"],
  about:
    "Their number and their total size count against the tenant's ceilings `snapshots` and `snapshotBytes`.",
  examples: [{ line: "berth snapshot ls acme", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const tenant = tenantName(positionals[0] ?? "");
  const snapshots = await (await context.door()).snapshots.list(tenant);
  await context.terminal.answer({ tenant, snapshots }, () =>
    snapshots.length === 0 ? `${tenant} has no snapshots` : snapshotTable(snapshots, Date.now()),
  );
  return exitCodes.ok;
}

function snapshotTable(snapshots: readonly SnapshotView[], nowMs: number): string {
  const rows = snapshots.map((one) => [
    ...[one.name, byteSize(one.size), one.count, one.method, one.sandbox],
    `${spanText(nowMs - one.createdAtMs)} ago`,
    one.expiresAtMs === undefined ? "never" : `in ${spanText(one.expiresAtMs - nowMs)}`,
    one.host ?? "-",
  ]);
  return table(["SNAPSHOT", "SIZE", "FILES", "METHOD", "SANDBOX", "MADE", "EXPIRES", "HOST"], rows);
}
