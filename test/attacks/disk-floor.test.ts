import { statfsSync } from "node:fs";
import { join } from "node:path";
import { FileRefusal } from "@berth/protocol";
import { expect, onTestFinished, test } from "vitest";
import { TestHost } from "../support/host.ts";
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

test("below the floor of free disk space what grows is stopped, and nothing else can grow, whatever its quota", async () => {
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
