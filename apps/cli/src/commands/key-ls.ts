import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { spanText } from "../terminal/quantities.ts";
import { table } from "../terminal/table.ts";

const options = {} as const;

export const keyLs = command({
  name: "key ls",
  summary: "keys of the gateway, without their secrets",
  positionals: [],
  examples: [{ line: "berth key ls", note: "" }],
  options,
  run,
});

async function run(_: Arguments<typeof options>, context: Context): Promise<number> {
  const keys = await (await context.door()).keys.list();
  const now = Date.now();
  const named = keys.some(({ tenantName }) => tenantName !== undefined);
  const header = ["KEY", "NAME", "FOR", "PROFILES", "POOLS", "AGE", "USED", "EXPIRES"];
  const rows = keys.map((key) => [
    key.id,
    key.name,
    key.role === "admin" ? "everything" : (key.tenant ?? ""),
    key.profiles?.join(",") ?? "all",
    key.pools?.join(",") ?? "all",
    spanText(now - key.createdAtMs),
    key.usedAtMs === undefined ? "never" : `${spanText(now - key.usedAtMs)} ago`,
    expiresText(key.expiresAtMs, now),
    ...(named ? [key.tenantName ?? "-"] : []),
  ]);
  await context.terminal.answer({ keys }, () => table([...header, ...(named ? ["GIVEN NAME"] : [])], rows));
  return exitCodes.ok;
}

function expiresText(atMs: number | undefined, now: number): string {
  if (atMs === undefined) return "never";
  return atMs <= now ? "expired" : `in ${spanText(atMs - now)}`;
}
