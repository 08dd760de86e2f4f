import { createHash } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  type ExecResult,
  Fault,
  outcomeText,
  type SandboxKey,
  type SandboxProfile,
  type SetUpReport,
  setUpOutputBytes,
  setUpReport,
  shownOutput,
} from "@berth/protocol";
import { z } from "zod";
import { writeNote } from "./host-files.ts";

const remembered = z.strictObject({ containerId: z.string(), report: setUpReport });

/** The file that records a sandbox's set-up. It lies beside the workspaces, where no sandbox can write. */
export function setUpPath(key: SandboxKey, root: string): string {
  return join(root, ".setup", `${createHash("sha256").update(key).digest("hex").slice(0, 32)}.json`);
}

/** The report of that container's set-up. Undefined: no successful one is recorded. */
export async function rememberedSetUp(path: string, containerId: string): Promise<SetUpReport | undefined> {
  try {
    const found = remembered.parse(JSON.parse(await readFile(path, "utf8")));
    return found.containerId === containerId ? found.report : undefined;
  } catch {
    return undefined;
  }
}

/** Records that the container is set up: a worker that adopts it does not run the set-up again. */
export async function rememberSetUp(path: string, containerId: string, report: SetUpReport): Promise<void> {
  try {
    await writeNote(path, { containerId, report });
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new Fault("workspace-unusable", { path, detail }, { cause: error });
  }
}

export async function forgetSetUp(path: string): Promise<void> {
  await rm(path, { force: true });
}

/** Whether the set-up runs in a container of its own, before the commands': its network is another than theirs. */
export function setsUpApart({ setup, network }: SandboxProfile): boolean {
  return !setup.root && setup.command !== "" && setup.network !== undefined && setup.network !== network;
}

/** Throws `setup-failed` unless the command ended with 0. */
export function checkedSetUp(
  key: string,
  { outcome, output, wallMs }: Pick<ExecResult, "outcome" | "output" | "wallMs">,
): SetUpReport {
  const how = outcomeText(outcome);
  const shown = shownOutput(output, setUpOutputBytes);
  if (outcome.kind !== "exited" || outcome.code !== 0)
    throw new Fault("setup-failed", { sandboxKey: key, how, wallMs, output: shown });
  return { ok: true, how, output: shown, endedAtMs: Date.now(), wallMs };
}
