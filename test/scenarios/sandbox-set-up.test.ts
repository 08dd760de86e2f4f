import { readdir } from "node:fs/promises";
import { join } from "node:path";
import Docker from "dockerode";
import { describe, expect } from "vitest";
import { startRequest, test } from "../support/host.ts";
import { shown } from "../support/shown.ts";

const image = "berth-busybox:test";

describe("set-up command", () => {
  test("a set-up command runs once in each container before its first command, as the sandbox's user", async ({
    host,
  }) => {
    const setup = { command: "id -u; env | grep TEAM; echo more >> runs; echo here > /tmp/mark" };
    const profile = { image, setup, env: { TEAM: "blue" }, exec: { timeoutMs: "5s" } };
    const first = await host.sandbox({ profile });
    const said = async (command: string, sandbox = first) => shown(await sandbox.exec({ command })).stdout;
    const uid = await said("id -u");
    expect(uid).not.toBe("0\n");
    expect(first.origin.setUp).toMatchObject({ ok: true, how: "exited 0", output: `${uid}TEAM=blue\n` });
    expect(await said("cat /tmp/mark runs")).toBe("here\nmore\n");
    // Another worker process that finds the container does not run it again, and knows how it ended.
    first.detach();
    const adopted = await host.sandbox({ epoch: 2, profile });
    expect(adopted.origin).toMatchObject({ how: "adopted", setUp: first.origin.setUp });
    expect(await said("cat runs", adopted)).toBe("more\n");
    // A container that replaces a dead one is set up too.
    const docker = new Docker();
    const [running] = await docker.listContainers({ filters: { label: [`berth.fleet=${host.fleet}`] } });
    await docker.getContainer(running?.Id ?? "").kill();
    await expect.poll(() => adopted.isReady).toBe(false);
    expect(await said("cat /tmp/mark runs", adopted)).toBe("here\nmore\nmore\n");
    adopted.detach();
    // With another command, the container is another one.
    const changed = { ...profile, setup: { command: "echo other >> runs" } };
    const other = await host.sandbox({ epoch: 3, profile: changed });
    expect(other.origin.how).toBe("started");
    expect(await said("cat runs", other)).toBe("more\nmore\nother\n");
  });

  test("a set-up command that fails or times out leaves no sandbox, and is tried again", async ({ host }) => {
    const start = (setup: object) =>
      host.driver().start(startRequest({ profile: { image, setup, exec: { drainMs: 0 } } }));
    const command = "echo begun >> tries; echo no such package >&2; test $(wc -l < tries) -gt 1";
    await expect(start({ command })).rejects.toMatchObject({
      code: "setup-failed",
      message: expect.stringMatching(/set-up command exited 1; its last output: no such package/),
    });
    expect(await host.driver().list()).toEqual([]);
    const again = await start({ command });
    expect(again.origin.setUp).toMatchObject({ ok: true, output: "no such package\n" });
    await again.stop();
    await expect(start({ command: "echo slow; sleep 60", timeoutMs: "500ms" })).rejects.toMatchObject({
      code: "setup-failed",
      context: { how: "timed out after 0.5 s", output: "slow\n" },
    });
  });

  test("a set-up command has a network of its own, which the sandbox's commands do not have", async ({
    host,
  }) => {
    const docker = new Docker();
    const Name = `${host.fleet}-setup`;
    const network = await docker.createNetwork({ Name, Internal: true });
    try {
      const setup = { command: "ls /sys/class/net > nets; echo gone > /tmp/mark", network: Name };
      const sandbox = await host.sandbox({ profile: { image, setup } });
      expect(sandbox.origin.setUp).toMatchObject({ ok: true });
      const { stdout } = shown(await sandbox.exec({ command: "cat nets; ls /sys/class/net /tmp" }));
      expect(stdout).toBe("eth0\nlo\n/sys/class/net:\nlo\n\n/tmp:\n");
      expect(await readdir(join(host.workspacesRoot, ".setup"))).toHaveLength(1);
      await sandbox.stop();
    } finally {
      await network.remove();
    }
  });
});
