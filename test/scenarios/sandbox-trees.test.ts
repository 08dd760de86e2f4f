import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { Fault, type SandboxProfile, sandboxKey } from "@berth/protocol";
import type { DockerDriver, Sandbox } from "@berth/sandbox";
import { describe, expect } from "vitest";
import { noteOrigin } from "../../packages/sandbox/src/docker/trees/fork-origin.ts";
import { test as onHost, startRequest, TestHost } from "../support/host.ts";
import { type LoopFileSystem, loopMount, noLoopMount } from "../support/loop-mount.ts";
import { shown } from "../support/shown.ts";

const { profile } = startRequest();
const owner = (key: string, of: SandboxProfile = profile) => ({ key: sandboxKey.parse(key), profile: of });

const kinds = ["plain", "btrfs", "xfs"] as const;
const methods = { plain: /^(copy|reflink|btrfs)$/, btrfs: /^btrfs$/, xfs: /^reflink$/ };

function reasonAgainst(kind: (typeof kinds)[number]): string | undefined {
  return kind === "plain" ? undefined : noLoopMount(kind);
}

async function onFileSystem(
  kind: (typeof kinds)[number],
  run: (host: TestHost, driver: DockerDriver) => Promise<void>,
  plain: TestHost,
): Promise<void> {
  if (kind === "plain") return run(plain, plain.driver());
  using mounted = loopMount(kind as LoopFileSystem);
  const host = new TestHost(join(mounted.path, "workspaces"));
  try {
    await run(host, host.driver());
  } finally {
    await host.close();
  }
}

async function output(sandbox: Sandbox, command: string): Promise<string> {
  return shown(await sandbox.exec({ command })).stdout;
}

const make = `
  mkdir -p src/deep ro && echo one > src/a && echo two > src/deep/b && ln -s /etc/passwd link && ln -s a src/rel
  ln src/a src/hard && mkfifo pipe && printf '#!/bin/sh\\n' > run && chmod 4755 run && echo x > secret && chmod 000 secret
  chmod 555 ro && truncate -s 5M sparse && touch -d '2020-02-02 02:02:02 UTC' src/a && echo odd > "$(printf 'odd\\nname')"
`;
const look =
  "ls -lnR --time-style=+%s | grep -v '^total' | sed -E 's/^(d[^ ]+ +[0-9]+ +[0-9]+ +[0-9]+ +)[0-9]+/\\\\1-/'";

describe.each(kinds)("on a file system of the kind %s", (kind) => {
  const why = reasonAgainst(kind);
  const test = why === undefined ? onHost : onHost.skip;

  test(`a snapshot has every file as it was, and a fork and a restored workspace have them again${why ? `: ${why}` : ""}`, {
    timeout: 60_000,
  }, async ({ host: plain }) => {
    await onFileSystem(
      kind,
      async (host, driver) => {
        const first = await host.sandbox({ key: "acme" }, driver);
        await output(first, make);
        const before = await output(first, look);
        const measured = await first.usage();
        await first.stop();
        const taken = await driver.trees.take(owner("acme"), "acme.base.0123abcd", measured, {});
        expect(taken.method).toMatch(methods[kind]);
        expect(taken.entries).toBe(measured.entries);
        expect((await driver.trees.list()).map(({ id }) => id)).toEqual(["acme.base.0123abcd"]);

        expect(await driver.trees.originOf(sandboxKey.parse("acme.s.f1"))).toEqual({ kind: "absent" });
        const snapshot = { id: "acme.base.0123abcd", name: "base" };
        await driver.trees.fork(owner("acme.s.f1"), snapshot, {});
        expect(await driver.trees.originOf(sandboxKey.parse("acme.s.f1"))).toEqual({
          kind: "fork",
          of: "base",
        });
        const fork = await host.sandbox({ key: "acme.s.f1" }, driver);
        expect(await output(fork, look)).toBe(before);
        await output(
          fork,
          "echo changed > src/a; rm -rf src/deep; chmod 600 secret; echo y > secret; echo new > new",
        );
        await fork.stop();

        const again = await host.sandbox({ key: "acme", epoch: 2 }, driver);
        expect(await output(again, look)).toBe(before);
        await output(again, "rm -rf src; echo gone > gone");
        await again.stop();
        await driver.trees.restore(owner("acme"), snapshot.id, { check: () => {} });
        const restored = await host.sandbox({ key: "acme", epoch: 3 }, driver);
        expect(await output(restored, look)).toBe(before);
        await restored.stop();

        await driver.trees.remove(snapshot.id, profile, {});
        expect(await readdir(join(host.workspacesRoot, ".snapshots"))).toEqual([]);
      },
      plain,
    );
  });
});

onHost("a workspace that has files of its own, or was emptied as a fork, is not absent", async ({ host }) => {
  const driver = host.driver();
  const key = sandboxKey.parse("acme.s.one");
  expect(await driver.trees.originOf(key)).toEqual({ kind: "absent" });
  const sandbox = await host.sandbox({ key }, driver);
  await output(sandbox, "echo x > x");
  await sandbox.stop();
  expect(await driver.trees.originOf(key)).toEqual({ kind: "own" });
  await driver.trees.take(owner(key), "acme.one.0123abcd", { entries: 1, bytes: 4096 }, {});
  const fork = sandboxKey.parse("acme.s.two");
  await driver.trees.fork(owner(fork), { id: "acme.one.0123abcd", name: "one" }, {});
  const forked = await host.sandbox({ key: fork }, driver);
  await output(forked, "rm x");
  await forked.stop();
  expect(await driver.trees.originOf(fork)).toEqual({ kind: "fork", of: "one" });
  await driver.removeEmptyWorkspace(fork);
  expect(await driver.trees.originOf(fork)).toEqual({ kind: "absent" });
});

onHost(
  "a snapshot that cannot be finished leaves nothing behind, and a restore none of the two",
  async ({ host }) => {
    const driver = host.driver();
    const sandbox = await host.sandbox({ key: "acme" }, driver);
    await output(sandbox, "echo x > x");
    await sandbox.stop();
    const aborted = AbortSignal.abort();
    const none = { entries: 1, bytes: 1 };
    await expect(
      driver.trees.take(owner("acme"), "acme.a.0123abcd", none, { signal: aborted }),
    ).rejects.toThrow();
    expect(await readdir(join(host.workspacesRoot, ".snapshots"))).toEqual([]);
    await driver.trees.take(owner("acme"), "acme.a.0123abcd", none, {});
    const late = new Fault("lease-lost", { sandboxKey: "acme", epoch: 1, highestEpoch: 2 });
    const check = () => {
      throw late;
    };
    await expect(driver.trees.restore(owner("acme"), "acme.a.0123abcd", { check })).rejects.toBe(late);
    expect(await readdir(join(host.workspacesRoot, ".snapshots"))).toEqual(["acme.a.0123abcd"]);
    expect((await lstat(join(host.workspacesRoot, "acme", "x"))).isFile()).toBe(true);
  },
);

onHost(
  "a fork that failed, or whose worker died, says nothing of the files that come after it",
  async ({ host }) => {
    const driver = host.driver();
    const failed = sandboxKey.parse("acme.s.failed");
    const died = sandboxKey.parse("acme.s.died");
    await expect(
      driver.trees.fork(owner(failed), { id: "acme.gone.0123abcd", name: "gone" }, {}),
    ).rejects.toMatchObject({ code: "snapshot-refused" });
    // As a worker leaves it that dies before the workspace gets its name.
    await noteOrigin(died, host.workspacesRoot, "gone");
    for (const key of [failed, died]) {
      expect(await driver.trees.originOf(key)).toEqual({ kind: "absent" });
      const sandbox = await host.sandbox({ key }, driver);
      await output(sandbox, "echo x > x");
      await sandbox.stop();
      expect(await driver.trees.originOf(key)).toEqual({ kind: "own" });
    }
  },
);

onHost("a look at an empty workspace does not change it, and no fork takes its name", async ({ host }) => {
  const driver = host.driver();
  const key = sandboxKey.parse("acme.s.one");
  const sandbox = await host.sandbox({ key }, driver);
  await driver.trees.take(owner(key), "acme.one.0123abcd", { entries: 0, bytes: 0 }, {});
  expect(await driver.trees.originOf(key)).toEqual({ kind: "own" });
  const forking = driver.trees.fork(owner(key), { id: "acme.one.0123abcd", name: "one" }, {});
  await expect(forking).rejects.toMatchObject({ code: "snapshot-refused" });
  expect(await driver.trees.originOf(key)).toEqual({ kind: "own" });
  await sandbox.files.write("x", "x");
  expect(await output(sandbox, "cat x")).toBe("x");
});

onHost("a snapshot is made of files that are larger than a later profile lets one be", async ({ host }) => {
  const driver = host.driver();
  const sandbox = await host.sandbox({ key: "acme" }, driver);
  await output(sandbox, "head -c 3000000 /dev/zero > large");
  await sandbox.stop();
  const tight = startRequest({
    profile: { limits: { workspaceBytes: 1_000_000 }, ulimits: { fsize: 500_000 } },
  });
  const none = { entries: 1, bytes: 1 };
  const taken = await driver.trees.take(owner("acme", tight.profile), "acme.a.0123abcd", none, {});
  expect(taken.entries).toBe(1);
});
