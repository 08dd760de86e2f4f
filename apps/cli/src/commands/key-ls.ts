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
  examples: [{ line: "berth key ls", says: "" }],
  options,
  run,
});

async function run(_: Arguments<typeof options>, context: Context): Promise<number> {
  const keys = await (await context.door()).keys.list();
  const now = Date.now();
  await context.terminal.answer({ keys }, () =>
    table(
      ["KEY", "NAME", "FOR", "PROFILES", "POOLS", "AGE", "USED", "EXPIRES"],
      keys.map(({ id, name, role, tenant, profiles, pools, createdAtMs, usedAtMs, expiresAtMs }) => [
        id,
        name,
        role === "admin" ? "everything" : (tenant ?? ""),
        profiles?.join(",") ?? "all",
        pools?.join(",") ?? "all",
        spanText(now - createdAtMs),
        usedAtMs === undefined ? "never" : `${spanText(now - usedAtMs)} ago`,
        expiresText(expiresAtMs, now),
      ]),
    ),
  );
  return exitCodes.ok;
}

function expiresText(atMs: number | undefined, now: number): string {
  if (atMs === undefined) return "never";
  return atMs <= now ? "expired" : `in ${spanText(atMs - now)}`;
}
