import { type FileEntry, toolsDirectory } from "@berth/protocol";
import { type Arguments, command, jobOptions } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { longListing } from "../file-listing.ts";
import { placeOf, runJob } from "../run-job.ts";

/** The limit of one list job. */
const maxItems = 10_000;
const options = {
  ...jobOptions,
  prompt: { type: "boolean", about: "print a text about them for an agent's prompt" },
} as const;

export const toolsLs = command({
  name: "tools ls",
  summary: "list a tenant's tools, with their size and date",
  positionals: ["TENANT"],
  about:
    "Lists /tools of the tenant's sandboxes. Their profile needs a `toolsAccess` other than none (docs/profiles.md).",
  examples: [
    { line: "berth tools ls acme", note: "" },
    { line: "berth tools ls acme --prompt >> system-prompt.txt", note: "" },
    { line: "berth tools ls acme --json | jq '.entries[].path'", note: "for a program" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [tenant = ""] = positionals;
  const request = { kind: "list", path: toolsDirectory, recursive: true, maxItems } as const;
  const { value } = await runJob(context, { tenant, ...placeOf(values), request });
  const { entries = [], truncated = false } = value;
  await context.terminal.answer({ entries, truncated }, () =>
    values.prompt ? promptText(entries) : longListing(entries),
  );
  if (truncated) context.terminal.note(`berth: there are more than ${maxItems}`);
  return exitCodes.ok;
}

/** Tenants can install tools under any name, so only plain names may enter a prompt. */
function promptText(entries: readonly FileEntry[]): string {
  const programs = entries.flatMap(({ path, type }) => {
    const [, name] = new RegExp(`^${toolsDirectory}/bin/([A-Za-z0-9._+-]{1,64})$`).exec(path) ?? [];
    return name === undefined || type === "directory" ? [] : [name];
  });
  const known = programs.length === 0 ? "There are none yet." : `There are: ${programs.join(", ")}.`;
  return [
    `Programs in ${toolsDirectory}/bin are first in PATH, and stay when the sandbox is started again. ${known}`,
    "What is installed elsewhere, such as by a package manager, is gone with the container.",
    `To keep a program, put it into ${toolsDirectory}/bin, if that can be written.`,
  ].join("\n");
}
