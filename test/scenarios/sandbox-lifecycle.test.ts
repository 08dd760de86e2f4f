import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { isFault, workerId } from "@berth/protocol";
import Docker from "dockerode";
import { describe, expect } from "vitest";
import { startRequest, type TestHost, test } from "../support/host.ts";
import { shown } from "../support/shown.ts";

const docker = new Docker(
  process.env.DOCKER_HOST?.startsWith("unix://") ? { socketPath: process.env.DOCKER_HOST.slice(7) } : {},
);

/** The test's own hand on the container, as an operator or an accident would have it. */
function container(host: TestHost, key = "acme"): Docker.Container {
  return docker.getContainer(`berth-${host.fleet}-${key}`);
}

describe("sandbox's container", () => {
  test("a sandbox's container has all of the hardening and nothing more", async ({ host }) => {
    await host.sandbox();
    const { HostConfig, Config, Mounts } = await container(host).inspect();
    expect(HostConfig).toMatchObject({
      CapDrop: ["ALL"],
      SecurityOpt: [
        "no-new-privileges",
        expect.stringMatching(/^seccomp=\{"defaultAction":"SCMP_ACT_ERRNO"/),
      ],
      Privileged: false,
      ReadonlyRootfs: true,
      NetworkMode: "none",
      Memory: 512 * 1024 ** 2,
      MemorySwap: 512 * 1024 ** 2,
      NanoCpus: 1e9,
      PidsLimit: 256,
      IpcMode: "private",
      CgroupnsMode: "private",
      LogConfig: { Type: "none" },
      RestartPolicy: { Name: "no" },
    });
    expect([HostConfig.Devices ?? [], HostConfig.CapAdd ?? [], HostConfig.Binds ?? []]).toEqual([[], [], []]);
    expect(Object.keys(HostConfig.Tmpfs ?? {}).sort()).toEqual(["/run", "/tmp", "/var/tmp"]);
    for (const options of Object.values(HostConfig.Tmpfs ?? {}))
      expect(options).toMatch(/size=\d+,nr_inodes=\d+/);
    expect(HostConfig.Ulimits?.map(({ Name, Hard }) => [Name, Hard])).toEqual(
      expect.arrayContaining([
        ["nofile", 4096],
        ["fsize", 1024 ** 3],
      ]),
    );
    expect(Mounts.map(({ Destination, RW }) => [Destination, RW]).sort()).toEqual([
      ["/.berth/init", false],
      ["/.berth/link", false],
      ["/etc/group", false],
      ["/etc/hosts", false],
      ["/etc/passwd", false],
      ["/etc/resolv.conf", false],
      ["/workspace", true],
    ]);
    expect(Config.User).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  });

  test("a sandbox's container has labels of its fleet, worker and sandbox", async ({ host }) => {
    await host.sandbox({ key: "acme.main", epoch: 7 });
    const { Config } = await container(host, "acme.main").inspect();
    expect(Config.Labels).toMatchObject({
      "berth.fleet": host.fleet,
      "berth.sandbox-key": "acme.main",
      "berth.worker": "worker-1",
      "berth.epoch": "7",
      "berth.config": expect.stringMatching(/^[0-9a-f]{32}$/),
    });
  });

  test("a sandbox's container that dies between two commands is replaced for the next, on the same workspace", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.write("kept.txt", "still here");
    await container(host).remove({ force: true });
    await expect
      .poll(async () => (await sandbox.exec({ command: "cat kept.txt" })).outcome)
      .toEqual({
        kind: "exited",
        code: 0,
      });
    expect(sandbox.origin.restarts).toBe(1);
  });

  test("a sandbox's container that is gone stays gone until the next request", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.exec({ command: "sleep 600 & true" });
    await container(host).remove({ force: true });
    // Three looks of the quota's watch, which goes on because of what was left in the background.
    const until = performance.now() + 1_500;
    while (performance.now() < until) expect(await host.driver().list()).toEqual([]);
  });

  test("a sandbox's container that dies during a command makes it end as lost, and the next one runs", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const running = sandbox.exec(
      { command: "echo go; sleep 60" },
      {
        onOutput: () =>
          void container(host)
            .kill()
            .catch(() => {}),
      },
    );
    expect((await running).outcome).toMatchObject({ kind: "lost" });
    expect(shown(await sandbox.exec({ command: "echo again" })).stdout).toBe("again\n");
  });

  test("a sandbox's container that is replaced finds its workspace usable, although a command took every permission from it", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    await sandbox.exec({ command: "echo kept > file; chmod 000 /workspace" });
    await container(host).kill();
    expect(shown(await sandbox.exec({ command: "cat file" })).stdout).toBe("kept\n");
    expect((await sandbox.files.stat("")).mode & 0o777).toBe(0o700);
  });

  test("a sandbox's container that hangs is found out, removed and replaced", async ({ host }) => {
    const sandbox = await host.sandbox({ leaseMs: 2_000 });
    await container(host).pause();
    const { outcome } = await sandbox.exec({ command: "echo never" });
    expect(outcome).toMatchObject({ kind: "lost", message: expect.stringContaining("did not answer") });
    expect(shown(await sandbox.exec({ command: "echo again" })).stdout).toBe("again\n");
  });

  test("a sandbox's container is gone after stop, which is idempotent, and takes nothing more", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    await Promise.all([sandbox.stop(), sandbox.stop()]);
    await sandbox.stop();
    expect(await host.driver().list()).toEqual([]);
    await expect(sandbox.exec({ command: "true" })).rejects.toSatisfy((error) =>
      isFault(error, "sandbox-stopped"),
    );
  });

  test("a sandbox's container stopped in the middle of a command ends the command", async ({ host }) => {
    const sandbox = await host.sandbox();
    const started = Promise.withResolvers<unknown>();
    const running = sandbox.exec({ command: "sleep 60" }, { onStarted: started.resolve });
    await started.promise;
    await sandbox.stop();
    expect((await running).outcome).toEqual({ kind: "cancelled", reason: "the sandbox was stopped" });
  });
});

describe("sandbox whose worker restarts", () => {
  test("a sandbox whose worker restarts is adopted with everything in it", async ({ host }) => {
    const first = await host.sandbox({ epoch: 1 });
    await first.exec({ command: "sleep 1237 & echo up > /tmp/warm" });
    const { Id } = await container(host).inspect();
    first.detach();
    const second = await host.sandbox({ epoch: 2 });
    expect(second.origin).toMatchObject({ how: "adopted", killedLeftovers: 0, watchdogFired: false });
    expect((await container(host).inspect()).Id).toBe(Id);
    expect(shown(await second.exec({ command: "cat /tmp/warm; pgrep -fc 'sleep 123[7]'" })).stdout).toBe(
      "up\n1\n",
    );
  });

  test("a sandbox whose worker restarts has the commands of its earlier life killed before it takes new ones", async ({
    host,
  }) => {
    const first = await host.sandbox({ epoch: 1 });
    const started = Promise.withResolvers<unknown>();
    const abandoned = first.exec({ command: "sleep 1238" }, { onStarted: started.resolve });
    await started.promise;
    first.detach();
    await abandoned;
    const second = await host.sandbox({ epoch: 2 });
    expect(second.origin).toMatchObject({ how: "adopted", killedLeftovers: 1 });
    expect(shown(await second.exec({ command: "pgrep -fc 'sleep 123[8]'" })).stdout).toBe("0\n");
  });

  test("a sandbox whose worker restarts no longer obeys the old worker", async ({ host }) => {
    const old = await host.sandbox({ epoch: 1 });
    const next = await host.sandbox({ epoch: 2 });
    expect(next.origin.how).toBe("adopted");
    await expect(old.exec({ command: "echo stale > stale" })).rejects.toSatisfy((error) =>
      isFault(error, "fenced"),
    );
    await old.stop();
    expect(shown(await next.exec({ command: "ls" }))).toMatchObject({ outcome: { code: 0 }, stdout: "" });
  });

  test("a sandbox whose worker restarts refuses a start with a lower epoch", async ({ host }) => {
    await host.sandbox({ epoch: 5 });
    const driver = host.driver();
    await expect(driver.start(startRequest({ epoch: 4 }))).rejects.toSatisfy((error) =>
      isFault(error, "fenced"),
    );
  });

  test("a sandbox whose worker restarts kills what runs inside when it is left alone for a lease's length, and reports it", async ({
    host,
  }) => {
    const first = await host.sandbox({ epoch: 1, leaseMs: 500 });
    await first.exec({ command: "sleep 1239 & true" });
    first.detach();
    const top = async () => JSON.stringify((await container(host).top()).Processes);
    await expect.poll(top).not.toContain("sleep 1239");
    const second = await host.sandbox({ epoch: 2 });
    expect(second.origin).toMatchObject({ how: "adopted", watchdogFired: true });
  });

  test("a sandbox whose worker restarts is rebuilt when it does not answer, or is set up otherwise, or was another worker's", async ({
    host,
  }) => {
    const id = async () => (await container(host).inspect()).Id;
    const first = await host.sandbox({ epoch: 1 });
    const ids = [await id()];
    await first.files.write("kept", "yes");
    first.detach();
    await container(host).pause();
    const second = await host.sandbox({ epoch: 2 });
    ids.push(await id());
    second.detach();
    const third = await host.sandbox({ epoch: 3, profile: { limits: { pids: 100 } } });
    ids.push(await id());
    third.detach();
    const other = host.driver({ worker: workerId.parse("worker-2") });
    const fourth = await host.sandbox({ epoch: 4, profile: { limits: { pids: 100 } } }, other);
    ids.push(await id());
    expect(new Set(ids).size).toBe(4);
    expect(fourth.origin.how).toBe("started");
    expect(shown(await fourth.exec({ command: "cat kept" })).stdout).toBe("yes");
  });
});

describe("workspaces", () => {
  test.runIf(process.getuid?.() === 0)("workspaces are 0700 and each its own user's", async ({ host }) => {
    const sandboxes = [await host.sandbox({ key: "one" }), await host.sandbox({ key: "two" })];
    const owners: number[] = [];
    for (const sandbox of sandboxes) {
      const { mode, uid } = await lstat(join(host.workspacesRoot, sandbox.key));
      expect(mode & 0o777).toBe(0o700);
      expect(shown(await sandbox.exec({ command: "id -u" })).stdout).toBe(`${uid}\n`);
      owners.push(uid);
    }
    expect(owners.every((uid) => uid > 0)).toBe(true);
    expect(new Set(owners).size).toBe(2);
  });

  test.runIf(process.getuid?.() === 0)(
    "workspaces never share a user, even when their hashes would",
    async ({ host }) => {
      const driver = host.driver({ uids: { first: 3_000_000, count: 2 } });
      const one = await host.sandbox({ key: "one" }, driver);
      const two = await host.sandbox({ key: "two" }, driver);
      const uids = await Promise.all(
        [one, two].map(async (s) => shown(await s.exec({ command: "id -u" })).stdout.trim()),
      );
      expect(uids.toSorted()).toEqual(["3000000", "3000001"]);
      await expect(driver.start(startRequest({ key: "three" }))).rejects.toThrow("all 2 uids are taken");
    },
  );

  test("workspaces stay when the container is gone", async ({ host }) => {
    const first = await host.sandbox();
    await first.files.write("dir/file.txt", "bytes");
    await first.stop();
    const second = await host.sandbox({ epoch: 2 });
    expect(second.origin.how).toBe("started");
    expect(Buffer.from((await second.files.read("dir/file.txt")).bytes).toString()).toBe("bytes");
    expect(await readdir(join(host.workspacesRoot, "acme"))).toEqual(["dir"]);
  });
});

describe("reaper", () => {
  test("the reaper removes the containers it is given, in every state", async ({ host }) => {
    const driver = host.driver();
    const running = await host.sandbox({ key: "running" });
    for (const key of ["exited", "paused", "kept"]) (await host.sandbox({ key })).detach();
    await container(host, "exited").kill();
    await container(host, "paused").pause();
    const spec = (await container(host, "kept").inspect()).Config;
    await docker.createContainer({
      name: `berth-${host.fleet}-created`,
      Image: spec.Image,
      Labels: { ...spec.Labels, "berth.sandbox-key": "created" },
    });
    const states = Object.fromEntries((await driver.list()).map(({ key, state }) => [key, state]));
    expect(states).toEqual({
      running: "running",
      exited: "exited",
      paused: "paused",
      kept: "running",
      created: "created",
    });
    running.detach();
    const { removed, failed } = await driver.reap(({ key }) => key !== "kept");
    expect(failed).toEqual([]);
    expect(removed.map(({ key }) => key).sort()).toEqual(["created", "exited", "paused", "running"]);
    expect((await driver.list()).map(({ key }) => key)).toEqual(["kept"]);
    await driver.reap(() => true);
  });

  test("the reaper leaves other fleets alone", async ({ host }) => {
    await host.sandbox();
    const stranger = host.driver({ fleet: `${host.fleet}-x` as typeof host.fleet });
    expect((await stranger.reap(() => true)).removed).toEqual([]);
    expect(await host.driver().list()).toHaveLength(1);
  });
});
