/**
 * One set-up at a time. The lock is a folder holding one file named after its owner:
 *
 *   absent or empty   free      taken by renaming a prepared folder onto it, which fails while it is not empty
 *   <owner file>      held      broken, if the owner is dead, by removing exactly that file
 *
 * Because an owner's file name is never used twice, two waiters that both find the same dead owner cannot remove
 * each other's fresh lock. It does not survive a move between machines: an owner is known by its pid.
 */
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SetupProblem } from "./problem.mjs";
import { processUnder } from "./process-state.mjs";

const HAS_PROC = processUnder(process.pid) !== undefined;
const POLL_MS = 250;
const MAX_WAIT_MS = 20 * 60_000;

/**
 * @param {string} folder where the lock is
 * @param {{ onWait?: (pid: number) => void, onDeadOwner?: (pid: number) => unknown, maxWaitMs?: number }} [options]
 * @returns {Promise<() => void>} gives the lock back; also done when the process exits
 */
export async function takeLock(folder, options = {}) {
  const deadline = Date.now() + (options.maxWaitMs ?? MAX_WAIT_MS);
  const owner = `${process.pid}.${processUnder(process.pid)?.startedAt ?? 0}.${randomBytes(6).toString("hex")}`;
  let reportedPid = 0;
  for (;;) {
    if (tryTake(folder, owner)) {
      const release = () => giveBack(folder, owner);
      process.once("exit", release);
      return () => {
        process.removeListener("exit", release);
        release();
      };
    }
    const holder = holderOf(folder);
    if (holder && !isAlive(holder)) {
      await options.onDeadOwner?.(holder.pid);
      rmSync(path.join(folder, holder.file), { force: true });
      continue;
    }
    if (Date.now() > deadline) {
      throw new SetupProblem("Another set-up is still running and did not finish in time.", {
        why: `process ${holder?.pid ?? "(unknown)"} holds ${folder}`,
        fix: [`wait for it, or end it (kill ${holder?.pid ?? "PID"}), then run this again`],
      });
    }
    if (holder && holder.pid !== reportedPid) {
      reportedPid = holder.pid;
      options.onWait?.(holder.pid);
    }
    await sleep(POLL_MS);
  }
}

function tryTake(folder, owner) {
  if (holderOf(folder)) return false;
  mkdirSync(path.dirname(folder), { recursive: true });
  const prepared = mkdtempSync(`${folder}.`);
  try {
    writeFileSync(path.join(prepared, owner), "");
    renameSync(prepared, folder);
    return true;
  } catch (error) {
    rmSync(prepared, { recursive: true, force: true });
    if (error.code === "ENOTEMPTY" || error.code === "EEXIST") return false;
    throw error;
  }
}

function giveBack(folder, owner) {
  rmSync(path.join(folder, owner), { force: true });
  try {
    rmdirSync(folder);
  } catch {
    // Another process took it between the two lines: the folder is that process's now.
  }
}

function holderOf(folder) {
  let file;
  try {
    [file] = readdirSync(folder);
  } catch {
    return undefined;
  }
  if (!file) return undefined;
  const [pid, startedAt] = file.split(".");
  return { file, pid: Number(pid), startedAt };
}

function isAlive(holder) {
  // Without /proc there is only the pid to go by.
  if (!HAS_PROC) return answersSignals(holder.pid);
  return processUnder(holder.pid)?.startedAt === holder.startedAt;
}

function answersSignals(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}
