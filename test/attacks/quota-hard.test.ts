import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type SandboxProfileInput, sandboxKey } from "@berth/protocol";
import type { Sandbox } from "@berth/sandbox";
import { describe, expect, onTestFinished } from "vitest";
import { limitCall } from "../../packages/sandbox/src/docker/quota/project-quota.ts";
import { startRequest, TestHost } from "../support/host.ts";
import { loopDisk } from "../support/loop-disk.ts";
import { isHeld, mounterOf, test } from "../support/warm.ts";
import { python, sh } from "./inside.ts";

const mebibyte = 1024 * 1024;
const limit = 32 * mebibyte;
const limits = { workspaceBytes: limit, workspaceEntries: 500 };
const profile: SandboxProfileInput = { limits, exec: { timeoutMs: 60_000, graceMs: 100 } };
const key = sandboxKey.parse("acme");
/** The image's structures are rounded up, and what is over the limit is stopped by the watched quota as well. */
const most = limit + 4 * mebibyte;

async function expectBounded(sandbox: Sandbox, root: string): Promise<void> {
  expect((await sandbox.usage()).bytes).toBeLessThanOrEqual(most);
  const { blocks, bsize } = statfsSync(join(root, "acme"));
  expect(blocks * bsize).toBeLessThanOrEqual(most);
}

describe("workspace that is an image of its own", () => {
  const quota = { quota: "image" } as const;

  test("a workspace that is an image of its own takes no more than its limit, however it is filled, and can be cleaned and removed", async ({
    host,
  }) => {
    const driver = host.driver(quota);
    const sandbox = await host.sandbox({ profile }, driver);
    expect(sandbox.origin.quota).toBe("image");
    expect((await sandbox.files.list("")).items).toEqual([]);
    const image = join(host.workspacesRoot, ".images", "acme.ext4");
    expect(existsSync(image)).toBe(true);
    const { blocks, bsize } = statfsSync(join(host.workspacesRoot, "acme"));
    expect(blocks * bsize).toBeGreaterThanOrEqual(limit);

    // As fast as the disk takes it, before anybody could look.
    await sh(sandbox, "cat /dev/zero > one; cat /dev/zero > two");
    await expectBounded(sandbox, host.workspacesRoot);
    expect((await sh(sandbox, "rm -f one two")).outcome).toEqual({ kind: "exited", code: 0 });
    expect((await sandbox.usage()).bytes).toBeLessThan(mebibyte);

    // Deleted files that are held open, and pages of a mapped hole, which no walk sees.
    const taken = await python<number>(
      sandbox,
      `
import json, mmap, os
held, taken = [], 0
try:
    for n in range(100):
        f = open("gone", "wb"); os.unlink("gone"); held.append(f)
        f.write(bytes(${mebibyte})); f.flush(); taken += 1
except OSError: pass
print(json.dumps(taken))
`,
    ).catch(() => 0);
    expect(taken * mebibyte).toBeLessThanOrEqual(most);
    await sh(
      sandbox,
      `python3 -c '
import mmap
f = open("sparse", "wb"); f.truncate(1 << 30); f.close()
m = mmap.mmap(open("sparse", "r+b").fileno(), 0)
for at in range(0, 1 << 30, 4096): m[at] = 1
'`,
    );
    await expectBounded(sandbox, host.workspacesRoot);
    await sh(sandbox, "rm -f sparse gone");

    await sh(sandbox, "for n in $(seq 700); do : > f$n; done");
    expect((await sandbox.usage()).entries).toBeLessThanOrEqual(limits.workspaceEntries + 30);
    expect((await sh(sandbox, "find . -mindepth 1 -delete")).outcome).toEqual({ kind: "exited", code: 0 });

    await sandbox.files.write("kept", "x");
    await sandbox.stop();
    await expect(driver.removeEmptyWorkspace(key)).rejects.toMatchObject({ code: "workspace-unusable" });
    const again = await host.sandbox({ profile, epoch: 2 }, driver);
    await again.files.remove("kept");
    await again.stop();
    await driver.removeEmptyWorkspace(key);
    expect(existsSync(image)).toBe(false);
    expect(existsSync(join(host.workspacesRoot, "acme"))).toBe(false);
  });

  test("a workspace that is an image of its own keeps its files when the setting changes, when its limit rises, and with a worker that died", async ({
    host,
  }) => {
    const first = await host.sandbox({ profile }, host.driver(quota));
    await first.files.write("kept", "precious");
    first.detach();
    const adopted = await host.sandbox({ profile, epoch: 2 }, host.driver(quota));
    expect(adopted.origin).toMatchObject({ how: "adopted", quota: "image" });
    await adopted.stop();
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(host.workspacesRoot);
    // A host that walks now, with a profile that allows more.
    const larger = { ...profile, limits: { ...limits, workspaceBytes: 3 * limit } };
    const walking = await host.sandbox({ profile: larger, epoch: 3 });
    expect(walking.origin.quota).toBe("image");
    expect(Buffer.from((await walking.files.read("kept")).bytes).toString()).toBe("precious");
    expect((await sh(walking, "head -c 70000000 /dev/zero > more")).outcome).toEqual({
      kind: "exited",
      code: 0,
    });
    expect((await walking.usage()).bytes).toBeGreaterThan(2 * limit);
  });

  test("a workspace that is an image of its own is not made larger while any mount namespace has it", async ({
    host,
  }) => {
    const driver = host.driver(quota);
    const first = await host.sandbox({ profile }, driver);
    await first.files.write("kept", "precious");
    const holder = spawn("unshare", ["--mount", "sh", "-c", "echo has; read line"]);
    const ended = once(holder, "exit");
    await once(holder.stdout, "data");
    await first.stop();
    const attached = () =>
      execFileSync("losetup", ["-j", join(host.workspacesRoot, ".images", "acme.ext4")], {
        encoding: "utf8",
      });
    expect(attached()).not.toBe("");
    const larger = { ...profile, limits: { ...limits, workspaceBytes: 3 * limit } };
    const starting = host.sandbox({ profile: larger, epoch: 2 }, driver);
    const waits = setTimeout(2_000, "waits");
    expect(await Promise.race([starting.then(({ origin }) => origin.how), waits])).toBe("waits");
    holder.stdin.end("\n");
    await ended;
    const second = await starting;
    expect(Buffer.from((await second.files.read("kept")).bytes).toString()).toBe("precious");
    const { blocks, bsize } = statfsSync(join(host.workspacesRoot, "acme"));
    expect(blocks * bsize).toBeGreaterThanOrEqual(3 * limit);
  });

  test("a workspace that is an image of its own is not made over files that are there already", async ({
    host,
  }) => {
    const plain = await host.sandbox({ profile });
    expect(plain.origin.quota).toBe("walk");
    await plain.files.write("kept", "precious");
    await plain.stop();
    const next = await host.sandbox({ profile, epoch: 2 }, host.driver(quota));
    expect(next.origin.quota).toBe("walk");
    expect(Buffer.from((await next.files.read("kept")).bytes).toString()).toBe("precious");
  });

  test("a workspace that is an image of its own is in a snapshot with its files, also while it is not mounted, and is not exchanged for one", async ({
    host,
  }) => {
    const driver = host.driver(quota);
    const sandbox = await host.sandbox({ profile }, driver);
    await sandbox.files.write("kept", "precious");
    await sandbox.stop();
    const owner = { key, profile: startRequest({ profile }).profile };
    await driver.trees.take(owner, "snap_one", { entries: 1, bytes: 8 }, {});
    const restoring = driver.trees.restore(owner, "snap_one", { check: () => {} });
    await expect(restoring).rejects.toMatchObject({ code: "workspace-unusable" });
    const fork = { ...owner, key: sandboxKey.parse("fork") };
    await driver.trees.fork(fork, { id: "snap_one", name: "one" }, {});
    const forked = await host.sandbox({ profile, key: "fork" }, driver);
    expect(Buffer.from((await forked.files.read("kept")).bytes).toString()).toBe("precious");
    await forked.stop();
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(host.workspacesRoot);
  });

  test("a workspace that is an image of its own is unmounted when its container is evicted or reaped", async ({
    host,
  }) => {
    const driver = host.driver(quota);
    const first = await host.sandbox({ profile }, driver);
    await first.files.write("kept", "precious");
    expect(await first.park()).toBe(true);
    const mounted = () => readFileSync("/proc/self/mountinfo", "utf8").includes(host.workspacesRoot);
    expect(mounted()).toBe(true);
    expect(await driver.evict(key)).toBe(true);
    expect(mounted()).toBe(false);
    const second = await host.sandbox({ profile, epoch: 2 }, driver);
    expect(Buffer.from((await second.files.read("kept")).bytes).toString()).toBe("precious");
    second.detach();
    expect((await driver.reap(() => true)).removed).toHaveLength(1);
    expect(mounted()).toBe(false);
  });

  test("a workspace that is an image of its own is there also when a container of the pool could not be given it", async ({
    host,
    warm,
  }) => {
    const driver = await warm.driver({ count: 1, most: 1 }, profile, "worker-1", quota);
    const helper = mounterOf(host.workspacesRoot);
    process.kill(helper, "SIGSTOP");
    const starting = host.sandbox({ profile }, driver);
    await expect.poll(() => isHeld(host.workspacesRoot)).toBe(true);
    process.kill(helper, "SIGKILL");
    const sandbox = await starting;
    expect(sandbox.origin).toMatchObject({ how: "started", quota: "image" });
    await sandbox.files.write("kept", "precious");
    expect((await sh(sandbox, "cat kept")).outcome).toEqual({ kind: "exited", code: 0 });
    expect((await sandbox.usage()).bytes).toBeLessThan(mebibyte);
  });

  test("a workspace that is an image of its own is found beneath a symbolic link", async ({ host }) => {
    const link = `${host.workspacesRoot}.link`;
    symlinkSync(host.workspacesRoot, link);
    const linked = new TestHost(link);
    onTestFinished(() => linked.close());
    const driver = linked.driver(quota);
    const sandbox = await linked.sandbox({ profile }, driver);
    await sandbox.files.write("kept", "precious");
    sandbox.detach();
    const adopted = await linked.sandbox({ profile, epoch: 2 }, driver);
    expect(Buffer.from((await adopted.files.read("kept")).bytes).toString()).toBe("precious");
    const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
    expect(lines.filter((line) => line.includes(host.workspacesRoot))).toHaveLength(1);
    await adopted.stop();
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(host.workspacesRoot);
  });

  test("whose image cannot be mounted is not started, and nothing is written beside it", async ({ host }) => {
    const driver = host.driver(quota);
    const sandbox = await host.sandbox({ profile }, driver);
    await sandbox.stop();
    writeFileSync(join(host.workspacesRoot, ".images", "acme.ext4"), "no file system");
    await expect(host.sandbox({ profile, epoch: 2 }, driver)).rejects.toMatchObject({
      code: "workspace-unusable",
      message: expect.stringMatching(/its quota cannot be set: /),
    });
  });
});

describe("project quotas", () => {
  test("project quotas that the disk does not have are refused if they were chosen, and done without in auto", async ({
    host,
  }) => {
    const { problem } = await host.driver({ quota: "project" }).quota();
    if (problem === undefined) return;
    await expect(host.sandbox({ profile }, host.driver({ quota: "project" }))).rejects.toMatchObject({
      code: "workspace-unusable",
    });
    expect((await host.sandbox({ profile, epoch: 2 }, host.driver({ quota: "auto" }))).origin.quota).toBe(
      "walk",
    );
  });

  test("project quotas are set by number, for ext4 and for xfs, and 0 is no limit", () => {
    expect(limitCall("ext4", "/disk", 2_000_007, limits)).toEqual([
      "setquota",
      ["-P", "2000007", "0", "32768", "0", "500", "/disk"],
    ]);
    const [program, options] = limitCall("xfs", "/disk", 7, { workspaceBytes: 0, workspaceEntries: 0 });
    expect([program, options.at(-2)]).toEqual(["xfs_quota", "limit -p bhard=0k ihard=0 7"]);
  });

  test("bound a workspace where this kernel has them", async ({ skip }) => {
    const problem = projectDiskProblem();
    if (problem) skip(`no project quotas here: ${problem}`);
    const disk = loopDisk(256 * mebibyte, {
      make: ["mkfs.ext4", "-q", "-F", "-O", "project,quota", "-E", "quotatype=prjquota"],
      options: "loop,prjquota",
    });
    const host = new TestHost(join(disk, "workspaces"));
    onTestFinished(() => host.close());
    const sandbox = await host.sandbox({ profile }, host.driver({ quota: "auto" }));
    expect(sandbox.origin.quota).toBe("project");
    await sh(sandbox, "cat /dev/zero > one; cat /dev/zero > two");
    expect((await sandbox.usage()).bytes).toBeLessThanOrEqual(limit + mebibyte);
    expect((await sh(sandbox, "chattr -p 0 one")).outcome).not.toEqual({ kind: "exited", code: 0 });
  });
});

test("quota groups of btrfs bound a workspace, and let it be removed", async () => {
  const disk = loopDisk(512 * mebibyte, { make: ["mkfs.btrfs", "-q"] });
  execFileSync("btrfs", ["quota", "enable", disk]);
  const host = new TestHost(join(disk, "workspaces"));
  onTestFinished(() => host.close());
  mkdirSync(host.workspacesRoot);
  const driver = host.driver({ quota: "auto" });
  expect(await driver.quota()).toEqual({ kind: "btrfs" });
  const sandbox = await host.sandbox({ profile }, driver);
  expect(sandbox.origin.quota).toBe("btrfs");
  await sh(sandbox, "cat /dev/zero > one; sync one; cat /dev/zero > two");
  execFileSync("btrfs", ["filesystem", "sync", disk]);
  expect((await sandbox.usage()).bytes).toBeLessThanOrEqual(limit);
  expect((await sh(sandbox, "rm -f one two")).outcome).toEqual({ kind: "exited", code: 0 });
  // One of its own would count for itself.
  const errors = await python<string[]>(
    sandbox,
    `
import errno, fcntl, json, os
fd, found = os.open(".", os.O_RDONLY), []
for number, name in ((0x5000940e, 8), (0x50009401, 8), (0x50009417, 56), (0x50009418, 56)):
    order = bytearray(4096)
    order[0:8] = fd.to_bytes(8, "little"); order[name:name + 3] = b"sub"
    try:
        fcntl.ioctl(fd, number, order); found.append("done")
    except OSError as error: found.append(errno.errorcode[error.errno])
print(json.dumps(found))
`,
  );
  expect(errors).toEqual(["EPERM", "EPERM", "EPERM", "EPERM"]);
  await sandbox.stop();
  await driver.removeEmptyWorkspace(key);
  expect(existsSync(join(host.workspacesRoot, "acme"))).toBe(false);
});

/** Why the kernel mounts none, or the tools are missing. */
function projectDiskProblem(): string | undefined {
  if (spawnSync("setquota", ["-V"]).error) return "setquota is not installed";
  const directory = mkdtempSync(join(tmpdir(), "berth-project-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const image = join(directory, "image");
  const place = join(directory, "mounted");
  writeFileSync(image, "");
  truncateSync(image, 32 * mebibyte);
  mkdirSync(place);
  execFileSync("mkfs.ext4", ["-q", "-F", "-O", "project,quota", "-E", "quotatype=prjquota", image]);
  const { status, stderr } = spawnSync("mount", ["-o", "loop,prjquota", image, place], { encoding: "utf8" });
  if (status === 0) execFileSync("umount", [place]);
  return status === 0 ? undefined : stderr.trim();
}
