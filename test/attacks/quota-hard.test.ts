import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
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
import { initBinaryPath } from "@berth/init";
import { type SandboxProfileInput, sandboxKey } from "@berth/protocol";
import type { DockerDriver, Sandbox } from "@berth/sandbox";
import { describe, expect, onTestFinished } from "vitest";
import { ProjectQuota, quotaNumbers } from "../../packages/sandbox/src/docker/quota/project-quota.ts";
import { HostTool } from "../../packages/sandbox/src/docker/trees/host-tool.ts";
import { startRequest, TestHost } from "../support/host.ts";
import { loopDisk } from "../support/loop-disk.ts";
import { loopMount, noLoopMount } from "../support/loop-mount.ts";
import { shown } from "../support/shown.ts";
import { isHeld, mounterOf, test } from "../support/warm.ts";
import { python, sh } from "./inside.ts";

const mebibyte = 1024 * 1024;
const limit = 32 * mebibyte;
const limits = { workspaceBytes: limit, workspaceEntries: 500 };
const profile: SandboxProfileInput = { limits, exec: { timeoutMs: 60_000, graceMs: 100 } };
const key = sandboxKey.parse("acme");
const measured = { entries: 1, bytes: 8 };
/** The image's structures are rounded up, and what is over the limit is stopped by the watched quota as well. */
const most = limit + 4 * mebibyte;

async function expectBounded(sandbox: Sandbox, root: string): Promise<void> {
  expect((await sandbox.usage()).bytes).toBeLessThanOrEqual(most);
  const { blocks, bsize } = statfsSync(join(root, "acme"));
  expect(blocks * bsize).toBeLessThanOrEqual(most);
}

/** Half ones among them. Notes of containers' images lie there, too. */
function imagesOf({ workspacesRoot }: TestHost): string[] {
  return readdirSync(join(workspacesRoot, ".images"))
    .filter((name) => name.includes(".ext4"))
    .sort();
}

describe("workspace that is an image of its own", () => {
  const quota = { quota: "image" } as const;

  test("a workspace in its own disk image takes no more than its limit, and can be cleaned and removed", async ({
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

  test("a workspace in its own disk image keeps its files over changed settings and dead workers", async ({
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

  test("a workspace that is an image of its own is in a snapshot with its files, and so is a fork, and what a restore makes of it", async ({
    host,
  }) => {
    const driver = host.driver(quota);
    const sandbox = await host.sandbox({ profile }, driver);
    await sandbox.files.write("kept", "precious");
    await sandbox.stop();
    const owner = { key, profile: startRequest({ profile }).profile };
    await driver.trees.take(owner, "snap_one", { entries: 1, bytes: 8 }, {});
    const fork = { ...owner, key: sandboxKey.parse("fork") };
    await driver.trees.fork(fork, { id: "snap_one", name: "one" }, {});
    expect(await driver.trees.originOf(fork.key)).toEqual({ kind: "fork", of: "one" });
    const again = await host.sandbox({ profile, epoch: 2 }, driver);
    await again.files.write("more", "more");
    await again.stop();
    await driver.trees.restore(owner, "snap_one", { check: () => {} });
    for (const name of ["fork", "acme"]) {
      const made = await host.sandbox({ profile, key: name, epoch: 3 }, driver);
      expect(made.origin.quota).toBe("image");
      expect(shown(await made.exec({ command: "ls; cat kept" })).stdout).toBe("kept\nprecious");
      await sh(made, "cat /dev/zero > one; cat /dev/zero > two");
      const { blocks, bsize } = statfsSync(join(host.workspacesRoot, name));
      expect(blocks * bsize).toBeLessThanOrEqual(most);
      await made.stop();
    }
    expect(imagesOf(host)).toEqual(["acme.ext4", "fork.ext4"]);
    expect(readdirSync(join(host.workspacesRoot, ".snapshots"))).toEqual(["snap_one"]);
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(host.workspacesRoot);
  });

  test("a fork that has no room in an image of its limit leaves neither image nor note", async ({ host }) => {
    const driver = host.driver(quota);
    const sandbox = await host.sandbox({ profile }, driver);
    await sh(sandbox, "head -c 20000000 /dev/urandom > large");
    await sandbox.stop();
    await driver.trees.take({ key, profile: startRequest({ profile }).profile }, "snap_one", measured, {});
    const tight = startRequest({
      profile: { ...profile, limits: { ...limits, workspaceBytes: 4 * mebibyte } },
    });
    const fork = { key: sandboxKey.parse("fork"), profile: tight.profile };
    const forking = driver.trees.fork(fork, { id: "snap_one", name: "one" }, {});
    await expect(forking).rejects.toMatchObject({
      code: "snapshot-refused",
      context: { reason: "no-space" },
    });
    expect(await driver.trees.originOf(fork.key)).toEqual({ kind: "absent" });
    expect(imagesOf(host)).toEqual(["acme.ext4"]);
    expect(readdirSync(join(host.workspacesRoot, ".snapshots"))).toEqual(["snap_one"]);
    expect(existsSync(join(host.workspacesRoot, ".forks"))).toBe(false);
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

  test("a workspace whose image cannot be mounted is not started, and nothing is written beside it", async ({
    host,
  }) => {
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

  test("project quotas are limits in kibibytes and files, and 0 is no limit", () => {
    expect(quotaNumbers(limits)).toEqual({ kibibytes: 32_768, entries: 500 });
    expect(quotaNumbers({ workspaceBytes: 0, workspaceEntries: 0 })).toEqual({ kibibytes: 0, entries: 0 });
  });

  test("project quotas number a directory of xfs, and what is made in it, and say why they cannot be counted", async ({
    skip,
  }) => {
    const why = noLoopMount("xfs");
    if (why) skip(why);
    using mounted = loopMount("xfs");
    const tool = new HostTool(initBinaryPath);
    const projects = new ProjectQuota(mounted.path, tool);
    const path = join(mounted.path, "workspace");
    mkdirSync(path);
    expect(await projects.numberOf(path)).toBe(0);
    await tool.volume("project-set", path, 2_000_007);
    expect(await projects.numberOf(path)).toBe(2_000_007);
    mkdirSync(join(path, "inside"));
    expect(await projects.numberOf(join(path, "inside"))).toBe(2_000_007);
    // It is not mounted with prjquota.
    expect(await projects.problem()).toMatch(/^xfs at .* is not mounted with prjquota$/);
    await expect(projects.limit(path, 2_000_007, limits)).rejects.toMatchObject({
      code: "workspace-unusable",
    });
    writeFileSync(join(path, "file"), "");
    expect(await projects.limit(path, 2_000_008, limits)).toBe(false);
  });

  test.for(["ext4", "xfs"] as const)(
    "project quotas of %s bound a workspace, a fork and a restored one",
    async (kind, { skip }) => {
      const problem = projectDiskProblem(kind);
      if (problem) skip(`no project quotas of ${kind} here: ${problem}`);
      const disk = loopDisk(512 * mebibyte, projectDisks[kind]);
      const host = new TestHost(join(disk, "workspaces"));
      onTestFinished(() => host.close());
      const driver = host.driver({ quota: "auto" });
      const sandbox = await host.sandbox({ profile }, driver);
      expect(sandbox.origin.quota).toBe("project");
      await sh(sandbox, "cat /dev/zero > one; cat /dev/zero > two");
      expect((await sandbox.usage()).bytes).toBeLessThanOrEqual(limit + mebibyte);
      expect((await sh(sandbox, "chattr -p 0 one")).outcome).not.toEqual({ kind: "exited", code: 0 });
      await sh(sandbox, "rm one two");
      await sandbox.stop();
      await expectTreesBounded(host, driver, "project");
    },
  );
});

/** A fork and a restored workspace of a nearly empty snapshot, each filled for itself. */
async function expectTreesBounded(host: TestHost, driver: DockerDriver, kind: string): Promise<void> {
  const owner = { key, profile: startRequest({ profile }).profile };
  await driver.trees.take(owner, "snap_one", measured, {});
  const fork = sandboxKey.parse("fork");
  await driver.trees.fork({ ...owner, key: fork }, { id: "snap_one", name: "one" }, {});
  await driver.trees.restore(owner, "snap_one", { check: () => {} });
  // A second one finds the spare number in use.
  await driver.trees.restore(owner, "snap_one", { check: () => {} });
  for (const name of ["fork", "acme"]) {
    const made = await host.sandbox({ profile, key: name, epoch: 5 }, driver);
    expect(made.origin.quota).toBe(kind);
    await sh(made, "head -c 20000000 /dev/zero > half; sync half");
    expect((await made.usage()).bytes).toBeGreaterThan(19_000_000);
    await sh(made, "cat /dev/zero > one; sync one; cat /dev/zero > two");
    expect((await made.usage()).bytes).toBeLessThanOrEqual(limit + mebibyte);
    await made.stop();
  }
}

test("quota groups of btrfs bound a workspace, a fork and a restored one, and let it be removed", async ({
  skip,
}) => {
  const why = noLoopMount("btrfs");
  if (why) skip(why);
  const disk = loopDisk(512 * mebibyte, { make: ["mkfs.btrfs", "-q"] });
  const host = new TestHost(join(disk, "workspaces"));
  onTestFinished(() => host.close());
  mkdirSync(host.workspacesRoot);
  // Only who chose them has them switched on.
  expect(await host.driver({ quota: "auto" }).quota()).toMatchObject({ kind: "walk" });
  const driver = host.driver({ quota: "btrfs" });
  expect(await driver.quota()).toEqual({ kind: "btrfs" });
  expect(await host.driver({ quota: "auto" }).quota()).toEqual({ kind: "btrfs" });
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
  const again = await host.sandbox({ profile, epoch: 2 }, driver);
  await again.stop();
  await expectTreesBounded(host, driver, "btrfs");
});

const projectDisks = {
  ext4: {
    make: ["mkfs.ext4", "-q", "-F", "-O", "project,quota", "-E", "quotatype=prjquota"],
    options: "loop,prjquota",
  },
  xfs: { make: ["mkfs.xfs", "-q"], options: "loop,prjquota" },
};

/** Why the kernel mounts none: in its own words, or those of mount(8). */
function projectDiskProblem(kind: keyof typeof projectDisks): string | undefined {
  if (kind === "xfs" && noLoopMount("xfs")) return noLoopMount("xfs");
  const directory = mkdtempSync(join(tmpdir(), "berth-project-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const image = join(directory, "image");
  const place = join(directory, "mounted");
  writeFileSync(image, "");
  truncateSync(image, 512 * mebibyte);
  mkdirSync(place);
  const { make, options } = projectDisks[kind];
  const [program = "", ...words] = make;
  execFileSync(program, [...words, image], { stdio: "pipe" });
  const { status, stderr } = spawnSync("mount", ["-o", options, image, place], { encoding: "utf8" });
  if (status !== 0) return kernelWords(kind) ?? stderr.trim().split("\n")[0];
  const { options: mounted = [] } = mountedAt(place);
  execFileSync("umount", [place]);
  return mounted.includes("prjquota") ? undefined : `it was mounted with ${mounted.join(",")}`;
}

/** What the kernel said last of such a file system. */
function kernelWords(kind: string): string | undefined {
  const { stdout } = spawnSync("dmesg", [], { encoding: "utf8" });
  const names = { ext4: "EXT4-fs", xfs: "XFS" } as Record<string, string>;
  const last = stdout?.split("\n").findLast((line) => line.includes(`${names[kind]} (loop`));
  return last?.replace(/^\[[ \d.]+\] /, "");
}

function mountedAt(place: string): { readonly options?: readonly string[] } {
  const line = readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .find((one) => one.includes(` ${place} `));
  return { options: line?.split(" ")[3]?.split(",") ?? [] };
}
