/**
 * One set-up at a time. The lock is a folder holding one file named after its owner:
 *
 *   absent or empty   free      taken by renaming a prepared folder onto it, which fails while it is not empty
 *   <owner file>      held      broken, if the owner is dead, by removing exactly that file
 *
 * Because an owner's file name is never used twice, two waiters that both find the same dead owner cannot remove
 * each other's fresh lock. It does not survive a move between machines: an owner is known by its pid.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SetupProblem } from './problem.mjs';

const POLL_MS = 250;
const MAX_WAIT_MS = 20 * 60_000;

/**
 * @param {string} folder where the lock is
 * @param {{ onWait?: (pid: number) => void, maxWaitMs?: number }} [options]
 * @returns {Promise<() => void>} gives the lock back; also done when the process exits
 */
export async function takeLock(folder, options = {}) {
  const deadline = Date.now() + (options.maxWaitMs ?? MAX_WAIT_MS);
  const owner = `${process.pid}.${startOf(process.pid) ?? 0}.${randomBytes(6).toString('hex')}`;
  let told = 0;
  for (;;) {
    if (tryTake(folder, owner)) {
      const release = () => giveBack(folder, owner);
      process.once('exit', release);
      return () => {
        process.removeListener('exit', release);
        release();
      };
    }
    const holder = holderOf(folder);
    if (holder && !isAlive(holder)) {
      rmSync(path.join(folder, holder.file), { force: true });
      continue;
    }
    if (Date.now() > deadline) {
      throw new SetupProblem('Another set-up is still running and did not finish in time.', {
        why: `process ${holder?.pid ?? '(unknown)'} holds ${folder}`,
        fix: [`wait for it, or end it (kill ${holder?.pid ?? 'PID'}), then run this again`],
      });
    }
    if (holder && holder.pid !== told) {
      told = holder.pid;
      options.onWait?.(holder.pid);
    }
    await sleep(POLL_MS);
  }
}

function tryTake(folder, owner) {
  mkdirSync(path.dirname(folder), { recursive: true });
  const prepared = mkdtempSync(`${folder}.`);
  try {
    writeFileSync(path.join(prepared, owner), '');
    renameSync(prepared, folder);
    return true;
  } catch (error) {
    rmSync(prepared, { recursive: true, force: true });
    if (error.code === 'ENOTEMPTY' || error.code === 'EEXIST') return false;
    throw error;
  }
}

function giveBack(folder, owner) {
  rmSync(path.join(folder, owner), { force: true });
  try {
    rmdirSync(folder);
  } catch {
    // Somebody took it between the two lines: the folder is theirs now.
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
  const [pid, startedAt] = file.split('.');
  return { file, pid: Number(pid), startedAt };
}

function isAlive(holder) {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if (error.code !== 'EPERM') return false;
  }
  const startedAt = startOf(holder.pid);
  return startedAt === undefined || holder.startedAt === '0' || startedAt === holder.startedAt;
}

/** Start time in clock ticks, which tells a pid from its reuse; undefined where there is no /proc. */
function startOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold spaces and parentheses; start time is the 20th field after it.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}
