import { basename } from "node:path";
import type { SandboxProfileInput } from "@berth/protocol";
import { describe, expect } from "vitest";
import { machineEngine } from "../support/engine.ts";
import { startRequest } from "../support/host.ts";
import { shown } from "../support/shown.ts";
import { test as base } from "../support/warm.ts";

const docker = machineEngine();
const image = "berth-busybox:test";

/** The images that a test made go with it. */
const test = base.extend<{ derived: () => Promise<string[]> }>({
  derived: async ({ host }, use) => {
    const names = async () => {
      const noted = await host.driver().images.list();
      return noted.map((one) => one.image).filter((name) => name.startsWith("berth-derived:"));
    };
    await use(names);
    for (const name of await names())
      await docker
        .getImage(name)
        .remove({ force: true })
        .catch(() => {});
  },
});

/** Of the containers in which commands that name the fleet ran. */
async function expectNothingLeft(fleet: string): Promise<void> {
  const left = await docker.listContainers({ all: true, filters: { name: ["berth.set-up."] } });
  expect(left.filter(({ Command }) => Command.includes(fleet))).toEqual([]);
}

describe("set-up command as root", () => {
  test("a set-up command as root runs once for all sandboxes of an image, in what no sandbox can change", async ({
    host,
    derived,
  }) => {
    // Each test has a command of its own: images are the engine's, and stay.
    const command = `: ${host.fleet}; id -u; ls -A /workspace; grep -c ${basename(host.workspacesRoot)} /proc/self/mountinfo
      env | grep TEAM; test -e /.berth || echo no link
      date +%s%N > /etc/marker; cat /proc/sys/kernel/random/uuid >> /etc/marker
      printf '#!/bin/sh\\necho installed' > /bin/tool && chmod 4755 /bin/tool && chown 7:7 /etc/marker`;
    const profile: SandboxProfileInput = { image, setup: { command, root: true }, env: { TEAM: "blue" } };
    const [one, two] = await Promise.all([
      host.sandbox({ key: "acme", profile }),
      // As by another worker process.
      host.sandbox({ key: "globex", profile }, host.driver()),
    ]);
    const said = async (what: string, sandbox = one) => shown(await sandbox.exec({ command: what })).stdout;
    expect(await said("tool; id -u; stat -c %u /etc/marker")).toMatch(/^installed\n[1-9]\d+\n7\n$/);
    expect(await said("touch /etc/marker /bin/tool 2>&1; rm /etc/marker 2>&1; ls")).toMatch(
      /^(.*: Read-only file system\n){3}$/,
    );
    expect(await said("cat /etc/marker", two)).toBe(await said("cat /etc/marker"));
    // Neither workspace nor link nor variable was there.
    expect(one.origin.setUp).toMatchObject({ ok: true, how: "exited 0" });
    expect(one.origin.setUp?.output).toBe("0\n0\nno link\n");
    expect(two.origin.setUp).toEqual(one.origin.setUp);
    expect(await derived()).toHaveLength(1);
    // A sandbox that is replaced, or adopted, has the same image.
    one.detach();
    const adopted = await host.sandbox({ key: "acme", epoch: 2, profile });
    expect(adopted.origin).toMatchObject({ how: "adopted", setUp: one.origin.setUp });
    // A container that uses it keeps it; without one, it is pruned as if pulled.
    const made = await derived();
    expect(await host.driver().images.prune(0)).toEqual([]);
    await adopted.stop();
    await two.stop();
    expect(await host.driver().images.prune(0)).toEqual(made);
    await expect(docker.getImage(made[0] ?? "").inspect()).rejects.toMatchObject({ statusCode: 404 });
    const again = await host.sandbox({ key: "acme", epoch: 3, profile });
    expect(shown(await again.exec({ command: "tool" })).stdout).toBe("installed\n");
    expect(again.origin.setUp?.endedAtMs).toBeGreaterThan(one.origin.setUp?.endedAtMs ?? Infinity);
    await expectNothingLeft(host.fleet);
  });

  test("a set-up as root that fails or times out leaves nothing, and is tried again", async ({
    host,
    derived,
  }) => {
    const start = (setup: object, limits = {}) =>
      host.driver().start(startRequest({ profile: { image, limits, setup: { root: true, ...setup } } }));
    const failing = `echo ${host.fleet} no such package >&2; exit 3`;
    for (let tried = 0; tried < 2; tried++)
      await expect(start({ command: failing })).rejects.toMatchObject({
        code: "setup-failed",
        context: { sandboxKey: "acme", how: "exited 3", output: `${host.fleet} no such package\n` },
      });
    await expect(start({ command: `echo ${host.fleet}; sleep 60`, timeoutMs: "2s" })).rejects.toMatchObject({
      code: "setup-failed",
      context: { how: "timed out after 2 s", output: `${host.fleet}\n` },
    });
    // A process that was killed for memory has left something half done, even if the command exits with 0.
    const greedy = `: ${host.fleet}; head -c 60000000 /dev/zero > /dev/shm/big; exit 0`;
    await expect(start({ command: greedy }, { memoryBytes: "32m" })).rejects.toMatchObject({
      code: "setup-failed",
      context: { how: expect.stringContaining("out of memory") },
    });
    expect(await derived()).toEqual([]);
    expect(await host.driver().list()).toEqual([]);
    await expectNothingLeft(host.fleet);
  });

  test("a set-up command as root installs Debian packages, with users and files of theirs", async ({
    host,
    derived,
  }) => {
    const command = `set -e; : ${host.fleet}; cd /tmp; mkdir -p p/DEBIAN p/usr/bin
      printf 'Package: berth-tool\\nVersion: 1\\nArchitecture: all\\nMaintainer: t <t@example.com>\\nDescription: t\\n' > p/DEBIAN/control
      printf '#!/bin/sh\\nset -e\\nuseradd -r toolish; install -o toolish -m 600 /dev/null /var/lib/toolish\\n' > p/DEBIAN/postinst
      printf '#!/bin/sh\\necho packaged\\n' > p/usr/bin/berth-tool; chmod 755 p/DEBIAN/postinst p/usr/bin/berth-tool
      dpkg-deb -b p tool.deb; apt-get install -y ./tool.deb; rm -rf p tool.deb`;
    const setup = { command, root: true };
    const sandbox = await host.sandbox({ profile: { image: "berth-sandbox:bookworm", setup } });
    const { stdout } = shown(await sandbox.exec({ command: "berth-tool; stat -c %a /var/lib/toolish" }));
    expect(stdout).toBe("packaged\n600\n");
    expect(sandbox.origin.setUp?.output).toContain("Setting up berth-tool");
    expect(await derived()).toHaveLength(1);
  });

  test("a set-up command as root that its caller gives up is ended, and begun anew by the next", async ({
    host,
    derived,
  }) => {
    const stopped = new AbortController();
    const command = `: ${host.fleet}; echo done > /etc/marker; sleep 2`;
    const profile: SandboxProfileInput = { image, setup: { command, root: true } };
    const start = host.driver().start(startRequest({ profile }), { signal: stopped.signal });
    const running = async () => {
      const all = await docker.listContainers({ filters: { name: ["berth.set-up."] } });
      return all.filter(({ Command }) => Command.includes(host.fleet)).length;
    };
    start.catch(() => {});
    await expect.poll(running, { timeout: 30_000 }).toBe(1);
    stopped.abort();
    await expect(start).rejects.toMatchObject({ code: "aborted" });
    const sandbox = await host.sandbox({ profile });
    expect(shown(await sandbox.exec({ command: "cat /etc/marker" })).stdout).toBe("done\n");
    expect(await derived()).toHaveLength(1);
    await expectNothingLeft(host.fleet);
  });

  test("a set-up command as root is done in containers of the warm pool, which waits until a sandbox had it done", async ({
    host,
    warm,
    derived,
  }) => {
    const setup = { command: `echo ${host.fleet} > /etc/marker`, root: true };
    const profile: SandboxProfileInput = { image, setup };
    const driver = await warm.driver({ count: 0, most: 1 }, profile);
    const first = await host.sandbox({ profile }, driver);
    expect(first.origin).toMatchObject({ how: "started", setUp: { ok: true } });
    const pooled = await warm.driver({ count: 1, most: 1 }, profile, "worker-2");
    const second = await host.sandbox({ key: "globex", profile }, pooled);
    expect(second.origin).toMatchObject({ how: "warm", setUp: first.origin.setUp });
    expect(shown(await second.exec({ command: "cat /etc/marker" })).stdout).toBe(`${host.fleet}\n`);
    expect(await derived()).toHaveLength(1);
  });
});
