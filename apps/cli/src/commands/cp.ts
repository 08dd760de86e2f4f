import { stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { byteSize } from "@berth/protocol";
import { type Arguments, command, jobOptions } from "../command.ts";
import { Complaint, UsageError } from "../complaint.ts";
import type { Context } from "../context.ts";
import { download } from "../copy/download.ts";
import { type LeftOut, listLocal, meansContents, nameOf } from "../copy/local-source.ts";
import { LocalTarget, leadsOut } from "../copy/local-target.ts";
import { meansInside, type RemotePath, remotePath } from "../copy/remote-path.ts";
import { listRemote } from "../copy/remote-source.ts";
import { upload } from "../copy/upload.ts";
import type { SendJob } from "../copy/write-parts.ts";
import { exitCodes } from "../exit-codes.ts";
import { placeOf, runJob } from "../run-job.ts";
import { printable } from "../terminal/printable.ts";
import { ProgressBar } from "../terminal/progress-bar.ts";
import { counted } from "../terminal/quantities.ts";

const options = { ...jobOptions } as const;

export const cp = command({
  name: "cp",
  summary: "copy files and directories into a sandbox or out of it",
  positionals: ["FROM...", "TO"],
  about:
    "TENANT:PATH is in the tenant's workspace, anything else is here; write ./a:b for a name here that has a colon. As with cp, what\n" +
    "is copied goes into TO when that is a directory or ends with a slash, and becomes TO otherwise. DIR/. means what is in it.",
  examples: [
    { line: "berth cp main.py acme:", note: "a file into the workspace" },
    { line: "berth cp ./project acme:src", note: "a directory, as src" },
    { line: "berth cp ./project/. acme:", note: "what is in it" },
    { line: "berth cp acme:out/report.pdf .", note: "a file out of it" },
    { line: "berth cp acme:out ./results", note: "a directory out of it" },
  ],
  options,
  run,
});

interface Copied {
  files: number;
  bytes: number;
  leftOut: LeftOut[];
}

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const sources = positionals.slice(0, -1);
  const to = positionals.at(-1) ?? "";
  const remoteTo = remotePath(to);
  const remoteFrom = sources.map(remotePath).filter((one) => one !== undefined);
  if (remoteTo && remoteFrom.length > 0)
    throw new UsageError("one side has to be on this machine and the other in a sandbox", [
      "berth cp acme:file . && berth cp file globex:",
    ]);
  if (!remoteTo && remoteFrom.length < sources.length)
    throw new UsageError("one side has to be in a sandbox, as TENANT:PATH", [
      "berth cp FILE TENANT:PATH",
      "berth cp TENANT:PATH .",
    ]);
  const sender =
    (tenant: string): SendJob =>
    (request) =>
      runJob(context, { tenant, ...placeOf(values), request });
  const copied = remoteTo
    ? await copyIn(context, sources, { text: to, place: remoteTo }, sender(remoteTo.tenant))
    : await copyOut(context, remoteFrom, to, sender);
  const { files, bytes, leftOut } = copied;
  await context.terminal.answer(copied, () => `${counted(files, "file")}, ${byteSize(bytes)}`);
  if (!context.terminal.json)
    for (const { path, reason } of leftOut)
      context.terminal.note(`berth: left out: ${printable(path)}: ${printable(reason)}`);
  return leftOut.length === 0 ? exitCodes.ok : exitCodes.failed;
}

async function copyIn(
  context: Context,
  sources: readonly string[],
  to: { readonly text: string; readonly place: RemotePath },
  send: SendJob,
): Promise<Copied> {
  const { path } = to.place;
  const inside = sources.length > 1 || meansInside(to.text) || (await isRemoteDirectory(send, path));
  const listings = await Promise.all(
    sources.map((source) => {
      const as =
        meansContents(source) || !inside
          ? path
          : [path, nameOf(resolve(context.directory, source))].filter(Boolean).join("/");
      if (as === "" && !meansContents(source))
        throw new UsageError(`${source}: it needs a name in the sandbox`);
      return listLocal(resolve(context.directory, source), as);
    }),
  );
  const leftOut = listings.flatMap((listing) => listing.leftOut);
  const entries = listings
    .flatMap((listing) => listing.entries)
    .filter((entry) => {
      const out = entry.target !== undefined && leadsOut(entry.path, entry.target);
      if (out)
        leftOut.push({
          path: entry.place,
          reason: `a link that leads out of the workspace, to ${entry.target}`,
        });
      return !out;
    });
  const files = entries.filter(({ type }) => type === "file");
  const progress = bytesBar(context, files);
  await upload(entries, { send, onBytes: progress.add }).finally(progress.end);
  return { files: files.length, bytes: progress.bytes(), leftOut };
}

async function copyOut(
  context: Context,
  sources: readonly RemotePath[],
  to: string,
  sender: (tenant: string) => SendJob,
): Promise<Copied> {
  const place = resolve(context.directory, to);
  const isDirectory = (await stat(place).catch(() => undefined))?.isDirectory() ?? false;
  const inside = sources.length > 1 || meansInside(to) || isDirectory;
  const copied: Copied = { files: 0, bytes: 0, leftOut: [] };
  for (const { tenant, path, contents } of sources) {
    const send = sender(tenant);
    const { entries, leftOut } = await listRemote(send, path);
    const target = new LocalTarget(inside ? place : dirname(place));
    const name = inside ? (contents ? "" : basename(path)) : basename(place);
    const nameOfEntry = (of: string) => join(name, path === "" ? of : of.slice(path.length + 1));
    const files = entries.filter(({ type }) => type === "file");
    const progress = bytesBar(context, files);
    const more = await download(entries, {
      send,
      target,
      nameOf: nameOfEntry,
      onBytes: progress.add,
    }).finally(progress.end);
    copied.files += files.length;
    copied.bytes += progress.bytes();
    copied.leftOut.push(...leftOut, ...more);
  }
  return copied;
}

async function isRemoteDirectory(send: SendJob, path: string): Promise<boolean> {
  try {
    const { value } = await send({ kind: "stat", path });
    return value.entries?.[0]?.type === "directory";
  } catch (error) {
    if (error instanceof Complaint && error.code === "not-found") return false;
    throw error;
  }
}

function bytesBar({ terminal }: Context, files: readonly { readonly size: number }[]) {
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const bar = new ProgressBar(terminal, "copying", { amount: (bytes) => byteSize(Math.round(bytes)) });
  let done = 0;
  return {
    add: (bytes: number) => {
      done += bytes;
      bar.show(done, total);
    },
    bytes: () => done,
    end: () => bar.end(false),
  };
}
