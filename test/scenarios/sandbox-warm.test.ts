import { execFileSync } from "node:child_process";
import { constants, type FileHandle, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { Fault, sandboxProfile, workerId } from "@berth/protocol";
import type { Sandbox } from "@berth/sandbox";
import Docker from "dockerode";
import { describe, expect } from "vitest";
import { startRequest } from "../support/host.ts";
import { shown } from "../support/shown.ts";
import { isHeld, mounterOf, test } from "../support/warm.ts";

const docker = new Docker(
  process.env.DOCKER_HOST?.startsWith("unix://") ? { socketPath: process.env.DOCKER_HOST.slice(7) } : {},
);

const factsCommand = `
grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)' /proc/self/status
ulimit -a
cat /proc/self/cgroup | wc -l
cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null
cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max /sys/fs/cgroup/cpu.max 2>/dev/null
pwd; hostname; id -un; ls -ld /workspace /tmp /dev/shm; ls /.berth
stat -c '%A %u' /proc/1
cat /proc/sys/kernel/random/boot_id >/dev/null && ls /sys/class/net
touch /x 2>&1; touch /etc/passwd 2>&1; touch /.berth/link/x 2>&1
echo of the pool >> file; chown 0 file 2>&1 | cut -d: -f2; mknod dev c 1 3 2>&1
true`;

/** What a command sees of its confinement. Numbers of users are the sandbox's own, whichever they are. */
async function factsOf(sandbox: Sandbox): Promise<string> {
  const { stdout } = shown(await sandbox.exec({ command: factsCommand }));
  const uid = shown(await sandbox.exec({ command: "id -u" })).stdout.trim();
  return stdout.replaceAll(uid, "UID").replaceAll(/\w{3} +\d+ \d\d:\d\d/g, "DATE");
}

/** By mount point: its options and its file system's; of one that lies over another, the one on top. */
async function mountsOf(sandbox: Sandbox): Promise<Map<string, string[]>> {
  const { stdout } = shown(await sandbox.exec({ command: "cat /proc/self/mountinfo" }));
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => line.split(" "));
  return new Map(lines.map(([, , , , place = "", options = ""]) => [place, options.split(",").sort()]));
}

describe("container of the warm pool", () => {
  test("a container of the warm pool serves new and returning tenants, whose files keep their owner", async ({
    host,
    warm,
  }) => {
    const driver = await warm.driver();
    const first = await host.sandbox({ epoch: 1 }, driver);
    expect(first.origin).toMatchObject({ how: "warm", link: "unix", restarts: 0 });
    expect(shown(await first.exec({ command: "mkdir a && echo hi > a/b && id -un && pwd" })).stdout).toBe(
      "sandbox\n/workspace\n",
    );
    await first.files.write("c", "written by a file job");
    await first.stop();
    expect((await driver.list()).filter(({ key }) => key === first.key)).toEqual([]);
    // In an ordinary container the same uid owns everything.
    const plain = await host.sandbox({ epoch: 2 }, host.driver());
    expect(plain.origin.how).toBe("started");
    const owners = "stat -c %u . a a/b c | sort -u | tr '\\n' ' '; id -u";
    const [owner, uid] = shown(await plain.exec({ command: owners })).stdout.split(" ");
    expect(owner).toBe(uid?.trim());
    await plain.exec({ command: "echo more >> a/b; chmod 600 c" });
    await plain.stop();
    await warm.ready(driver);
    const third = await host.sandbox({ epoch: 3 }, driver);
    expect(third.origin.how).toBe("warm");
    expect(shown(await third.exec({ command: "cat a/b c; echo ! >> c; rm -r a; ls" })).stdout).toBe(
      "hi\nmore\nwritten by a file jobc\n",
    );
    expect(shown(await third.exec({ command: `${owners.replace("a a/b ", "")}` })).stdout).toMatch(
      /^(\d+) \1\n$/,
    );
  });

  test("a container of the warm pool is confined like any other", async ({ host, warm }) => {
    const driver = await warm.driver();
    const pooled = await host.sandbox({ epoch: 1, key: "pooled" }, driver);
    const plain = await host.sandbox({ epoch: 1, key: "plain" }, host.driver());
    expect([pooled.origin.how, plain.origin.how]).toEqual(["warm", "started"]);
    expect(await factsOf(pooled)).toBe(await factsOf(plain));
    const [ours, theirs] = [await mountsOf(pooled), await mountsOf(plain)];
    expect([...ours.keys()].sort()).toEqual([...theirs.keys()].sort());
    for (const [place, options] of theirs)
      expect(ours.get(place), place).toEqual(expect.arrayContaining(options));
    // More than an ordinary one has: an engine's bind mount leaves these out.
    expect(ours.get("/workspace")).toEqual(expect.arrayContaining(["nosuid", "nodev"]));
  });

  test("a container of the warm pool is parked and adopted like any other", async ({ host, warm }) => {
    const driver = await warm.driver();
    const first = await host.sandbox({ epoch: 1 }, driver);
    expect(first.origin.how).toBe("warm");
    await first.exec({ command: "echo here > /tmp/kept" });
    expect(await first.park()).toBe(true);
    const second = await host.sandbox({ epoch: 2 }, driver);
    expect(second.origin.how).toBe("adopted");
    expect(await second.park()).toBe(true);
    const other = host.driver({ worker: workerId.parse("worker-2") });
    const third = await host.sandbox({ epoch: 3 }, other);
    expect(third.origin).toMatchObject({ how: "adopted", link: "unix" });
    expect(shown(await third.exec({ command: "cat /tmp/kept; touch new; ls" })).stdout).toBe("here\nnew\n");
  });

  test("a container of the warm pool is another one for each profile, and only one that fits is taken", async ({
    host,
    warm,
  }) => {
    const driver = await warm.driver({ count: 1, most: 3 });
    const small = { limits: { pids: 77 } };
    const first = await host.sandbox({ epoch: 1, profile: small }, driver);
    expect(first.origin.how).toBe("started");
    expect(driver.warm).toMatchObject({ ready: 1, served: 0, missed: 1 });
    await first.stop();
    // One was asked for lately, so one is kept.
    await host.sandbox({ epoch: 1, key: "other", profile: small }, driver);
    await expect
      .poll(
        async () => {
          const next = await host.sandbox({ epoch: 2, profile: small }, driver);
          const { how } = next.origin;
          await next.stop();
          return how;
        },
        { timeout: 30_000 },
      )
      .toBe("warm");
  });

  test("a container of the warm pool has its workspace read-only where the profile wants that, and its user's number in /etc/passwd", async ({
    host,
    warm,
  }) => {
    const profile = { workspace: "ro" as const };
    const driver = await warm.driver({ count: 1, most: 1 }, profile);
    const sandbox = await host.sandbox({ epoch: 1, profile }, driver);
    expect(sandbox.origin.how).toBe("warm");
    const { stdout } = shown(await sandbox.exec({ command: "touch x 2>&1; id -un" }));
    expect(stdout).toMatch(/Read-only file system\nsandbox\n$/);
  });

  test("a workspace that could not be mounted once, or whose sandbox was given up meanwhile, does not turn the pool off", async ({
    host,
    warm,
  }) => {
    const driver = await warm.driver();
    const during = async (start: () => Promise<unknown>, then: (helper: number) => void) => {
      const helper = mounterOf(host.workspacesRoot);
      process.kill(helper, "SIGSTOP");
      const starting = start();
      starting.catch(() => {});
      await expect.poll(() => isHeld(host.workspacesRoot)).toBe(true);
      then(helper);
      return await starting;
    };
    const giveUp = new AbortController();
    const closed = during(
      () => driver.start(startRequest({ key: "closing" }), { signal: giveUp.signal }),
      (helper) => {
        giveUp.abort(new Fault("sandbox-stopped", { sandboxKey: "closing" }));
        process.kill(helper, "SIGCONT");
      },
    );
    await expect(closed).rejects.toMatchObject({ code: "sandbox-stopped" });
    await warm.ready(driver);
    const unlucky = await during(
      () => host.sandbox({ key: "unlucky" }, driver),
      (helper) => process.kill(helper, "SIGKILL"),
    );
    expect(unlucky).toMatchObject({ origin: { how: "started" } });
    await warm.ready(driver);
    expect(warm.states.filter((state) => state.startsWith("failing"))).toEqual([]);
    expect((await host.sandbox({ key: "next" }, driver)).origin.how).toBe("warm");
  });

  test("workspaces that can never be mounted turn the pool off after a few", async ({ host, warm }) => {
    const driver = await warm.driver({ count: 3, most: 3 });
    for (const name of ["one", "two", "three"]) {
      expect(warm.states.filter((state) => state.startsWith("failing"))).toEqual([]);
      const helper = mounterOf(host.workspacesRoot);
      process.kill(helper, "SIGSTOP");
      const starting = host.sandbox({ key: name }, driver);
      await expect.poll(() => isHeld(host.workspacesRoot)).toBe(true);
      process.kill(helper, "SIGKILL");
      expect((await starting).origin.how).toBe("started");
      if (name !== "three") await warm.ready(driver);
    }
    expect(warm.states.at(-1)).toMatch(/^failing running init --mounter/);
  });

  test("a container of the warm pool that runs no more is not taken, and the pool makes another", async ({
    host,
    warm,
  }) => {
    const driver = await warm.driver();
    const [{ id } = { id: "" }] = await driver.list();
    await docker.getContainer(id).kill();
    await expect
      .poll(async () => (await driver.list()).filter((one) => one.state === "running" && one.id !== id), {
        timeout: 30_000,
      })
      .toHaveLength(1);
    await warm.ready(driver);
    expect((await host.sandbox({ epoch: 1 }, driver)).origin.how).toBe("warm");
  });

  test("a container of the warm pool that is adopted while a pool looks for leftovers is not removed", async ({
    host,
    warm,
  }) => {
    const first = await warm.driver();
    const sandbox = await host.sandbox({ epoch: 1 }, first);
    expect(sandbox.origin.how).toBe("warm");
    await sandbox.park();
    await first.stopWarming();
    // The next life's pool reads every note. This one keeps it waiting between two of its looks.
    const root = join(host.workspacesRoot, ".parked");
    const gate = join(root, (await readdir(root))[0] ?? "", `${"0".repeat(32)}.held.gate`);
    execFileSync("mkfifo", [gate]);
    const next = host.driver({
      worker: workerId.parse("worker-1"),
      warm: { sizes: { count: 1, most: 1 }, profile: () => sandboxProfile.parse({}), onState: () => {} },
    });
    next.startWarming();
    const writer = await readerOf(gate);
    const adopted = await host.sandbox({ epoch: 2 }, host.driver({ worker: workerId.parse("worker-2") }));
    expect(adopted.origin.how).toBe("adopted");
    await rm(gate);
    await writer.close();
    await warm.ready(next);
    await next.stopWarming();
    expect(shown(await adopted.exec({ command: "echo alive" })).stdout).toBe("alive\n");
    expect(adopted.origin.restarts).toBe(0);
  });
});

/** Opens a named pipe for writing as soon as something reads it. */
async function readerOf(path: string): Promise<FileHandle> {
  let opened: FileHandle | undefined;
  const isRead = async () => {
    opened = await open(path, constants.O_WRONLY | constants.O_NONBLOCK).catch(() => undefined);
    return opened !== undefined;
  };
  await expect.poll(isRead).toBe(true);
  if (!opened) throw new Error("nothing reads it");
  return opened;
}
