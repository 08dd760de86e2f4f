import { type SandboxProfileInput, sandboxProfile } from "@berth/protocol";
import Docker from "dockerode";
import { describe, expect, onTestFinished } from "vitest";
import { containerSpec } from "../../packages/sandbox/src/docker/container-spec.ts";
import { type TestHost, test } from "../support/host.ts";
import { shown } from "../support/shown.ts";

const docker = new Docker(
  process.env.DOCKER_HOST?.startsWith("unix://") ? { socketPath: process.env.DOCKER_HOST.slice(7) } : {},
);
const image = "berth-busybox:test";
const mebibyte = 1024 ** 2;

/** What the engine says of the test's only container. */
async function configOf({ fleet }: TestHost): Promise<Docker.HostConfig> {
  const [found] = await docker.listContainers({ filters: { label: [`berth.fleet=${fleet}`] } });
  return (await docker.getContainer(found?.Id ?? "").inspect()).HostConfig;
}

/** As the engine is asked for it. */
function specOf(given: SandboxProfileInput): Docker.ContainerCreateOptions {
  return containerSpec({
    profile: sandboxProfile.parse({ image, ...given }),
    ...{ initPath: "/init", linkDirectory: "/link", etcFiles: [], hostMounts: [], imageVolumes: [] },
    workspace: { path: "/workspace", user: "2000000:2000000", ownUid: true, sharesUid: false },
    ...{ shared: { directories: [], gid: undefined }, seccomp: undefined, disk: "/dev/sda" },
  });
}

/** What the engine keeps of a container that is made and not started: it may have nothing to start it with. */
async function keptOf(given: SandboxProfileInput): Promise<Docker.HostConfig> {
  const { HostConfig, ...spec } = specOf(given);
  const container = await docker.createContainer({ ...spec, HostConfig: { ...HostConfig, Mounts: [] } });
  onTestFinished(() => container.remove());
  return (await container.inspect()).HostConfig;
}

describe("knobs of a profile that not every engine enforces", () => {
  test("a profile's swap is beyond its memory, in the container's configuration and in its cgroup where the kernel counts swap", async ({
    host,
  }) => {
    const limits = { memoryBytes: 64 * mebibyte, swapBytes: 16 * mebibyte };
    await using sandbox = await host.sandbox({ profile: { image, limits } });
    expect(await configOf(host)).toMatchObject({ Memory: 64 * mebibyte, MemorySwap: 80 * mebibyte });
    const { stdout } = shown(
      await sandbox.exec({
        command:
          "cat /sys/fs/cgroup/memory/memory.memsw.limit_in_bytes /sys/fs/cgroup/memory.swap.max 2>/dev/null || true",
      }),
    );
    // Both together on cgroup v1, swap alone on cgroup v2.
    if (stdout !== "") expect([80 * mebibyte, 16 * mebibyte]).toContain(Number(stdout));
  });

  test("a profile's AppArmor profile is the container's, which an engine without AppArmor ignores", async ({
    host,
  }) => {
    // Where there is AppArmor, the engine has loaded it.
    const apparmor = "docker-default";
    await using sandbox = await host.sandbox({ profile: { image, apparmor } });
    expect((await configOf(host)).SecurityOpt).toContain(`apparmor=${apparmor}`);
    const { SecurityOptions = [] } = (await docker.info()) as { SecurityOptions?: string[] };
    const { stdout } = shown(
      await sandbox.exec({ command: "cat /proc/self/attr/current 2>/dev/null || true" }),
    );
    if (SecurityOptions.some((option) => option.includes("name=apparmor")))
      expect(stdout).toContain(apparmor);
  });

  test("a profile's write operations and weight of the disk are in the container's configuration, as far as the kernel has them", async ({
    host,
  }) => {
    const profile = { limits: { diskWritesPerSecond: 300 }, ioWeight: 200 };
    expect(specOf(profile).HostConfig).toMatchObject({
      BlkioWeight: 200,
      BlkioDeviceWriteIOps: [{ Path: "/dev/sda", Rate: 300 }],
    });
    await using sandbox = await host.sandbox({ profile: { image, ...profile } });
    const { BlkioWeight, BlkioDeviceWriteIOps } = await configOf(host);
    expect(BlkioDeviceWriteIOps).toEqual([{ Path: expect.stringMatching(/^\/dev\//), Rate: 300 }]);
    // The engine takes it out, with a warning, where the kernel's scheduler has no weights.
    expect([0, 200]).toContain(BlkioWeight);
    expect(shown(await sandbox.exec({ command: "echo x > file && cat file" })).stdout).toBe("x\n");
  });

  test.for([
    ["all", { Count: -1 }],
    [2, { Count: 2 }],
    [["GPU-1", "GPU-2"], { DeviceIDs: ["GPU-1", "GPU-2"] }],
  ] as const)("a profile's gpus are device requests of the container: %j", async ([gpus, wanted]) => {
    const given = typeof gpus === "object" ? [...gpus] : gpus;
    const { DeviceRequests } = await keptOf({ gpus: given });
    expect(DeviceRequests).toMatchObject([{ ...wanted, Capabilities: [["gpu"]] }]);
    expect((await keptOf({})).DeviceRequests ?? []).toEqual([]);
  });

  test("a profile's cpus throttle what uses more", async ({ host }) => {
    await using sandbox = await host.sandbox({ profile: { image, limits: { cpus: 0.1 } } });
    const command =
      'for f in /sys/fs/cgroup/cpu/cpu.stat /sys/fs/cgroup/cpu.stat; do [ -r "$f" ] && stat=$f; done; ' +
      'while grep -q "^nr_throttled 0$" "$stat"; do :; done; grep "^nr_throttled " "$stat"';
    const { outcome, stdout } = shown(await sandbox.exec({ command }));
    expect(outcome).toEqual({ kind: "exited", code: 0 });
    expect(Number(stdout.split(" ")[1])).toBeGreaterThan(0);
    expect((await configOf(host)).NanoCpus).toBe(1e8);
  });

  test("a profile with a writable root has it up to its bound, or does not start where the engine cannot bound it", async ({
    host,
  }) => {
    const profile = { image, readOnlyRoot: false, limits: { rootBytes: 8 * mebibyte } };
    expect(specOf(profile).HostConfig).toMatchObject({
      ReadonlyRootfs: false,
      StorageOpt: { size: String(8 * mebibyte) },
    });
    const started = await host.sandbox({ profile }).catch((error: Error) => error.message);
    if (typeof started === "string") {
      expect(started).toMatch(/storage-opt|quota/i);
      expect(await host.driver().list()).toEqual([]);
      return;
    }
    expect((await configOf(host)).StorageOpt).toEqual({ size: String(8 * mebibyte) });
    const command = "mkdir -p /opt/own; echo x > /opt/own/small && head -c 16777216 /dev/zero > /opt/own/big";
    expect(shown(await started.exec({ command })).outcome).toMatchObject({ kind: "exited", code: 1 });
    expect(shown(await started.exec({ command: "cat /opt/own/small" })).stdout).toBe("x\n");
  });

  test("a profile's drain time is how long output of a background child is awaited", async ({ host }) => {
    const waiting = "(while [ ! -e go ]; do sleep 0.05; done; echo late) & echo done";
    const patient = await host.sandbox({ profile: { image, exec: { drainMs: 60_000 } } });
    const said = Promise.withResolvers<void>();
    const onOutput = () => said.resolve();
    const ending = patient.exec({ command: waiting }, { onOutput });
    // Its child goes on only now, so nothing but the wait for it can bring its output.
    await said.promise;
    await patient.files.write("go", "");
    expect(shown(await ending).stdout).toBe("done\nlate\n");
    await patient.stop();
    const hasty = await host.sandbox({ key: "globex", profile: { image, exec: { drainMs: 0 } } });
    expect(shown(await hasty.exec({ command: waiting })).stdout).toBe("done\n");
  });
});
