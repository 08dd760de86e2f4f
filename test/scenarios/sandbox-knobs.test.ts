import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Fault } from "@berth/protocol";
import Docker from "dockerode";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { startRequest, type TestHost, test } from "../support/host.ts";
import { shown } from "../support/shown.ts";

const docker = new Docker(
  process.env.DOCKER_HOST?.startsWith("unix://") ? { socketPath: process.env.DOCKER_HOST.slice(7) } : {},
);
const image = `berth-knobs-${process.pid}:test`;
const busybox = "berth-busybox:test";
let shared: string;

beforeAll(async () => {
  shared = await mkdtemp(join(tmpdir(), "berth-knobs-"));
  const container = await docker.createContainer({ Image: busybox });
  const [repo, tag] = image.split(":");
  const changes = [
    "ENV PATH=/opt/tool/bin:/bin:/usr/bin",
    "ENV GOROOT=/opt/go",
    "ENV HOME=/root LANG=de_DE.UTF-8",
  ];
  await container.commit({ repo, tag, changes });
  await container.remove();
});

afterAll(async () => {
  await docker.getImage(image).remove({ force: true });
  await rm(shared, { recursive: true, force: true });
});

/** What the engine says of the test's only container. */
async function containerOf({ fleet }: TestHost): Promise<Docker.ContainerInspectInfo> {
  const [found] = await docker.listContainers({ filters: { label: [`berth.fleet=${fleet}`] } });
  return await docker.getContainer(found?.Id ?? "").inspect();
}

/** Lets everything be done but making symbolic links. */
const noLinks = {
  defaultAction: "SCMP_ACT_ALLOW",
  syscalls: [{ names: ["symlink", "symlinkat"], action: "SCMP_ACT_ERRNO" }],
};

describe("knobs of a profile", () => {
  test("the knobs of a profile have their effect in the container, all of them at once", async ({ host }) => {
    const seccomp = join(shared, "no-links.json");
    await writeFile(seccomp, JSON.stringify(noLinks));
    for (const name of ["data", "drop"]) await mkdir(join(shared, name));
    await chmod(join(shared, "drop"), 0o777);
    await writeFile(join(shared, "data", "in.csv"), "1,2\n", { mode: 0o644 });
    const profile = {
      ...{ image, seccomp, user: "4321:4322", workdir: "src/app" },
      ...{ tmpfs: ["/tmp", "/scratch"], extraHosts: ["db.internal:192.0.2.7"] },
      env: { TEAM: "blue", LANG: "C" },
      ulimits: { nofile: { soft: 1024, hard: 2048 }, stack: 1024 ** 2 },
      limits: { shmBytes: "8m", tmpfsBytes: "16m", pids: 77, memoryBytes: "96m", cpus: 0.5 },
      mountable: {
        data: { source: join(shared, "data"), target: "/mnt/data" },
        drop: { source: join(shared, "drop"), target: "/mnt/drop", access: "rw" as const },
        unused: { source: "/nowhere", target: "/mnt/unused" },
      },
      mounts: ["data", "drop"],
    };
    await using sandbox = await host.sandbox({ profile }, host.driver({ mountRoots: [shared] }));
    const said = async (command: string) => shown(await sandbox.exec({ command })).stdout.trim();
    expect(
      await said("pwd; id -u; id -g; echo $PATH; echo $GOROOT; echo $HOME; echo $LANG; echo $TEAM"),
    ).toBe("/workspace/src/app\n4321\n4322\n/opt/tool/bin:/bin:/usr/bin\n/opt/go\n/workspace\nC\nblue");
    expect(await said("ulimit -Sn; ulimit -Hn; ulimit -s")).toBe("1024\n2048\n1024");
    const mounted = await said("mount");
    expect(mounted).toMatch(/ on \/scratch type tmpfs .*size=16384k/);
    expect(mounted).toMatch(/ on \/dev\/shm type tmpfs .*size=8192k/);
    expect(mounted).not.toMatch(/ on \/(run|var\/tmp) /);
    expect(await said("cat /etc/hosts")).toMatch(/^192\.0\.2\.7\tdb\.internal$/m);
    expect(
      await said("cat /mnt/data/in.csv; echo x > /mnt/data/out; echo y > /mnt/drop/out; cat /mnt/drop/out"),
    ).toBe("1,2\ny");
    expect(await said("ln -s a b || echo refused; touch a && ls")).toBe("refused\na");
    const { HostConfig } = await containerOf(host);
    expect(HostConfig).toMatchObject({
      Memory: 96 * 1024 ** 2,
      MemorySwap: 96 * 1024 ** 2,
      PidsLimit: 77,
      NanoCpus: 5e8,
    });
  });

  test("the knobs of a profile put a sandbox into a network of the engine's, with its name servers and hosts", async ({
    host,
  }) => {
    const Name = `${host.fleet}-net`;
    const network = await docker.createNetwork({ Name, Internal: true });
    try {
      const profile = {
        image: busybox,
        network: Name,
        dns: ["192.0.2.53"],
        extraHosts: ["db.internal:192.0.2.7"],
      };
      await using sandbox = await host.sandbox({ profile });
      const printed = shown(
        await sandbox.exec({ command: "cat /etc/hosts /etc/resolv.conf; ls /sys/class/net" }),
      ).stdout;
      expect(printed).toMatch(/^192\.0\.2\.7\tdb\.internal$/m);
      expect(printed).toMatch(/^nameserver /m);
      expect(printed).toMatch(/^eth0$/m);
      const { HostConfig, NetworkSettings } = await containerOf(host);
      expect(HostConfig.Dns).toEqual(["192.0.2.53"]);
      expect(Object.keys(NetworkSettings.Networks)).toEqual([Name]);
    } finally {
      await network.remove();
    }
  });

  test("the knobs of a profile give a workspace to read and write, only to read, or none", async ({
    host,
  }) => {
    const open = (workspace: "rw" | "ro" | "none") =>
      host.sandbox({ profile: { image: busybox, workspace } });
    const first = await open("rw");
    await first.files.write("kept", "kept\n");
    await first.stop();
    const reading = await open("ro");
    expect(shown(await reading.exec({ command: "cat kept; echo no > kept || echo refused" })).stdout).toBe(
      "kept\nrefused\n",
    );
    await expect(reading.files.write("new", "x")).rejects.toMatchObject({ code: "denied" });
    await expect(reading.files.remove("kept")).rejects.toMatchObject({ code: "denied" });
    await reading.stop();
    const without = await open("none");
    expect(shown(await without.exec({ command: "ls; echo mine > own; cat own" })).stdout).toBe("mine\n");
    await without.files.write("own", "written\n");
    expect(shown(await without.exec({ command: "cat own; df -P . | tail -1" })).stdout).toMatch(
      /^written\ntmpfs +65536 /,
    );
    await without.stop();
    const last = await open("rw");
    expect(shown(await last.exec({ command: "ls; cat kept" })).stdout).toBe("kept\nkept\n");
  });

  test("the knobs of a profile hold back the disk, as the container's configuration shows", async ({
    host,
  }) => {
    const mebibyte = 1024 ** 2;
    const limits = { diskWriteBytesPerSecond: "1m", diskReadBytesPerSecond: "8m", diskReadsPerSecond: 500 };
    await using sandbox = await host.sandbox({ profile: { limits, ioWeight: 100 } });
    const { HostConfig } = await containerOf(host);
    const [{ Path }] = HostConfig.BlkioDeviceWriteBps as [{ Path: string }];
    expect(Path).toMatch(/^\/dev\/[a-z]/);
    expect(HostConfig).toMatchObject({
      BlkioDeviceWriteBps: [{ Path, Rate: mebibyte }],
      BlkioDeviceReadBps: [{ Path, Rate: 8 * mebibyte }],
      BlkioDeviceReadIOps: [{ Path, Rate: 500 }],
    });
    const command = "dd if=/dev/zero of=big bs=256k count=12 oflag=direct 2>/dev/null && wc -c < big";
    const written = await sandbox.exec({ command });
    expect(shown(written).stdout.trim()).toBe(String(3 * mebibyte));
    expect(written.wallMs).toBeGreaterThan(1_500);
  });

  test("the knobs of a profile take 0 for no cap", async ({ host }) => {
    const limits = { memoryBytes: 0, cpus: 0, pids: 0, workspaceBytes: 0, workspaceEntries: 0 };
    const sandbox = await host.sandbox({ profile: { image: busybox, limits, exec: { timeoutMs: 0 } } });
    await sandbox.files.write("big", Buffer.alloc(1024));
    expect(shown(await sandbox.exec({ command: "ulimit -f; cat big | wc -c" })).stdout).toBe(
      "unlimited\n1024\n",
    );
    const { HostConfig } = await containerOf(host);
    expect([HostConfig.Memory, HostConfig.MemorySwap, HostConfig.NanoCpus]).toEqual([0, 0, 0]);
    expect(HostConfig.PidsLimit ?? 0).toBeLessThanOrEqual(0);
  });

  test("the knobs of a profile that this engine cannot give keep the sandbox from starting, in the engine's own words", async ({
    host,
  }) => {
    const refusal = async (profile: object) => {
      const started = host.driver().start(startRequest({ profile: { image: busybox, ...profile } }));
      return await started.then(
        (sandbox) => sandbox.stop().then(() => "started"),
        (error: Fault) => `${error.code}: ${error.message}`,
      );
    };
    expect(await refusal({ gpus: ["no-such-gpu"] })).toMatch(
      /^profile-unmet: .* gpus .*(device driver|gpu)/i,
    );
    expect(await refusal({ network: "no-such-network" })).toMatch(
      /^profile-unmet: .* network no-such-network: .*not found/,
    );
    expect(await refusal({ seccomp: "/no/such/file.json" })).toMatch(
      /seccomp profile \/no\/such\/file.json cannot be used/,
    );
    // Where the storage driver has quotas it starts.
    expect(await refusal({ readOnlyRoot: false, limits: { rootBytes: "64m" } })).toMatch(
      /^started$|^profile-unmet: .*(storage-opt|quota)/,
    );
  });
});
