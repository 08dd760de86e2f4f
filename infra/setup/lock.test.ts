import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { takeLock } from "./lock.mjs";

const lockModule = new URL("./lock.mjs", import.meta.url).href;

/** Takes the lock, notes coming and going in a diary, and holds it for `holdMs` (for ever when negative). */
const HOLDER = `
  import { appendFileSync } from 'node:fs';
  const [lockModule, folder, diary, holdMs] = process.argv.slice(1);
  const { takeLock } = await import(lockModule);
  const release = await takeLock(folder);
  appendFileSync(diary, 'in ' + process.pid + '\\n');
  process.stdout.write('held');
  if (Number(holdMs) < 0) setInterval(() => {}, 1000);
  else setTimeout(() => { appendFileSync(diary, 'out ' + process.pid + '\\n'); release(); }, Number(holdMs));
`;

describe("the set-up's lock", () => {
  let home: string;
  let folder: string;
  let diary: string;
  const children: ChildProcess[] = [];

  beforeEach(() => {
    home = mkdtempSync(path.join(os.tmpdir(), "berth-lock-"));
    folder = path.join(home, "lock");
    diary = path.join(home, "diary");
  });
  afterEach(() => {
    for (const child of children.splice(0)) child.kill("SIGKILL");
    rmSync(home, { recursive: true, force: true });
  });

  function startHolder(holdMs: number) {
    const argv = ["--input-type=module", "-e", HOLDER, lockModule, folder, diary, String(holdMs)];
    const child = spawn(process.execPath, argv, { stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    return child;
  }

  async function leaveDeadOwner() {
    const child = startHolder(-1);
    await once(child.stdout as NodeJS.ReadableStream, "data");
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  test("six processes that want the set-up's lock of a dead owner hold it one after another", async () => {
    await leaveDeadOwner();
    rmSync(diary);
    const ends = Array.from({ length: 6 }, () => once(startHolder(40), "exit"));
    expect((await Promise.all(ends)).map(([code]) => code)).toEqual([0, 0, 0, 0, 0, 0]);

    const entries = readFileSync(diary, "utf8").trim().split("\n");
    expect(entries).toHaveLength(12);
    for (let index = 0; index < entries.length; index += 2) {
      expect(entries[index + 1]).toBe(entries[index]?.replace("in", "out"));
    }
    expect(readdirSync(home)).toEqual(["diary"]);
  });

  test("an owner that was killed does not keep the set-up's lock", async () => {
    await leaveDeadOwner();
    expect(readdirSync(folder)).toHaveLength(1);
    const release = await takeLock(folder, { maxWaitMs: 2_000 });
    expect(readdirSync(folder)[0]).toMatch(new RegExp(`^${process.pid}\\.`));
    release();
  });

  test("a process that acts late on a dead holder does not take the set-up's lock from a quicker one", async () => {
    await leaveDeadOwner();
    let releaseQuicker = () => {};
    const late = takeLock(folder, {
      maxWaitMs: 300,
      onDeadOwner: async () => {
        releaseQuicker = await takeLock(folder);
      },
    });
    await expect(late).rejects.toThrow("Another set-up is still running");
    expect(readdirSync(folder)).toHaveLength(1);
    releaseQuicker();
  });

  test("a dead owner's pid that another process has by now does not keep the set-up's lock", async () => {
    mkdirSync(folder);
    writeFileSync(path.join(folder, `${process.pid}.1.abc`), "");
    const release = await takeLock(folder, { maxWaitMs: 2_000 });
    release();
    expect(readdirSync(home)).toEqual([]);
  });

  test("a process that waits too long for the set-up's lock fails with the holder's pid", async () => {
    const release = await takeLock(folder);
    const pids: number[] = [];
    const waiter = takeLock(folder, { maxWaitMs: 300, onWait: (pid) => pids.push(pid) });
    await expect(waiter).rejects.toMatchObject({
      name: "SetupProblem",
      why: expect.stringContaining(`${process.pid}`),
    });
    expect(pids).toEqual([process.pid]);
    release();
  });
});
