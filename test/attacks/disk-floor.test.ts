import { once } from "node:events";
import { statfsSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FileRefusal, sandboxKey, tenantId } from "@berth/protocol";
import { expect, onTestFinished, test } from "vitest";
import { DiskFloor } from "../../packages/sandbox/src/docker/disk-floor.ts";
import { startRequest, TestHost } from "../support/host.ts";
import { loopDisk } from "../support/loop-disk.ts";
import { shown } from "../support/shown.ts";
import { sh } from "./inside.ts";

const mebibyte = 1024 * 1024;
const floor = 48 * mebibyte;

function hostOn(disk: string) {
  const host = new TestHost(join(disk, "workspaces"));
  onTestFinished(() => host.close());
  return host;
}

const freeBytes = (disk: string) => {
  const { bavail, bsize } = statfsSync(disk);
  return bavail * bsize;
};

test("below the floor of free disk space a growing command is stopped, and no sandbox can grow, with any quota", async () => {
  const disk = loopDisk(192 * mebibyte);
  const host = hostOn(disk);
  const driver = host.driver({ diskFloorBytes: floor });
  const [greedy, quiet] = await Promise.all([
    host.sandbox({ key: "greedy" }, driver),
    host.sandbox({ key: "quiet" }, driver),
  ]);
  expect(await driver.diskTrouble()).toBeUndefined();
  await quiet.files.write("mine", "precious");
  const stopped = sh(
    greedy,
    `n=0; while [ $n -lt 90 ]; do n=$((n+1)); head -c ${2 * mebibyte} /dev/zero > f$n; sleep 0.1; done`,
  );
  const stdin = async function* () {
    await stopped;
    yield Buffer.from("go\n");
  };
  const waiting = quiet.exec({ command: "read line; cat mine" }, { stdin: stdin() });
  expect((await stopped).outcome).toMatchObject({ kind: "quota-exceeded", unit: "disk", limit: floor });
  expect(freeBytes(disk)).toBeLessThan(floor);
  expect(freeBytes(disk)).toBeGreaterThan(0);
  expect(await driver.diskTrouble()).toMatch(/disk is nearly full/);
  // A command that does not grow goes on.
  expect(shown(await waiting).stdout).toBe("precious");
  for (const sandbox of [greedy, quiet]) {
    const writing = sandbox.files.write("more", Buffer.alloc(10));
    await expect(writing).rejects.toMatchObject({
      code: "no-space",
      message: expect.stringMatching(/nearly full/),
    });
    const many = sandbox.files.writeMany([{ path: "more", bytes: Buffer.alloc(10) }]);
    await expect(many).rejects.toThrow(FileRefusal);
    const growing = await sh(sandbox, "head -c 100000 /dev/zero > more");
    expect(growing.outcome).toMatchObject({ kind: "quota-exceeded", unit: "disk" });
  }
  expect((await sh(quiet, "cat mine; rm mine")).outcome).toEqual({ kind: "exited", code: 0 });
  expect((await sh(greedy, "rm f*")).outcome).toEqual({ kind: "exited", code: 0 });
  await expect.poll(() => driver.diskTrouble(), { timeout: 10_000 }).toBeUndefined();
  expect((await sh(quiet, "head -c 100000 /dev/zero > more")).outcome).toEqual({ kind: "exited", code: 0 });
});

async function fill(disk: string): Promise<void> {
  await writeFile(join(disk, "filler"), Buffer.alloc(freeBytes(disk) - floor + mebibyte));
}

test("below the floor of free disk space no snapshot, fork, restore, peer's copy or set-up as root takes more of it", async () => {
  const disk = loopDisk(192 * mebibyte);
  const host = hostOn(disk);
  const driver = host.driver({ diskFloorBytes: floor });
  const acme = await host.sandbox({ key: "acme" }, driver);
  await acme.exec({ command: "echo precious > file" });
  await acme.stop();
  const { profile } = startRequest();
  const owner = (key: string) => ({ key: sandboxKey.parse(key), profile });
  await driver.trees.take(owner("acme"), "acme.a.0123abcd", { entries: 1, bytes: 1 }, {});
  await fill(disk);
  const full = { code: "snapshot-refused", message: expect.stringMatching(/disk is nearly full/) };
  const measured = { entries: 1, bytes: 1 };
  await expect(driver.trees.take(owner("acme"), "acme.b.0123abcd", measured, {})).rejects.toMatchObject(full);
  const snapshot = { id: "acme.a.0123abcd", name: "a" };
  await expect(driver.trees.fork(owner("acme.s.f"), snapshot, {})).rejects.toMatchObject(full);
  const restoring = driver.trees.restore(owner("acme"), snapshot.id, { check: () => {} });
  await expect(restoring).rejects.toMatchObject(full);
  expect(await readdir(join(host.workspacesRoot, ".snapshots"))).toEqual(["acme.a.0123abcd"]);

  const reports: { leftOut: number; cut: boolean }[] = [];
  const reader = await driver.start({
    ...startRequest({ key: "globex" }),
    peers: async () => [tenantId.parse("acme")],
    onSnapshot: (_, report) => reports.push(report),
  });
  expect(shown(await reader.exec({ command: "ls -A /team/acme" })).stdout).toBe("");
  expect(reports).toMatchObject([{ entries: 0, cut: true }]);
  await reader.stop();

  const setup = { command: `: ${host.fleet}; true`, root: true };
  const building = host.sandbox(
    { key: "acme", profile: { image: "berth-busybox:test", setup }, epoch: 2 },
    driver,
  );
  await expect(building).rejects.toMatchObject({
    code: "setup-failed",
    message: expect.stringMatching(/disk/),
  });
});

test("a command that fills the disk to its floor is ended there", async () => {
  const disk = loopDisk(192 * mebibyte);
  const guarded = new DiskFloor(disk, floor).whileRoom(
    undefined,
    ({ unit }) => `no ${unit}`,
    async (signal) => {
      await fill(disk);
      await once(signal, "abort");
      throw new Error("ended");
    },
  );
  await expect(guarded).rejects.toBe("no disk");
});
