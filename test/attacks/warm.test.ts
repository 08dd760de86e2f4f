import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { encodeFrame, FrameType, RecordWriter } from "@berth/init";
import { workerId } from "@berth/protocol";
import Docker from "dockerode";
import { describe, expect, onTestFinished } from "vitest";
import { shown } from "../support/shown.ts";
import { test } from "../support/warm.ts";

const run = promisify(execFile);
const docker = new Docker(
  process.env.DOCKER_HOST?.startsWith("unix://") ? { socketPath: process.env.DOCKER_HOST.slice(7) } : {},
);

/** A HELLO as any worker could say it. */
function hello(epoch: number, key: string): Buffer {
  const records = new RecordWriter()
    .add(1, randomBytes(16))
    .add(2, 60_000)
    .add(3, createHash("sha256").update(key).digest());
  return encodeFrame(FrameType.hello, 0, epoch, records.finish());
}

describe("container of the warm pool", () => {
  test("a container of the warm pool serves no second sandbox: asked for one, it ends what it runs and is replaced", async ({
    host,
    warm,
  }) => {
    const driver = await warm.driver();
    const sandbox = await host.sandbox({ epoch: 1 }, driver);
    expect(sandbox.origin.how).toBe("warm");
    const [{ id } = { id: "" }] = (await driver.list()).filter(({ key }) => key === "acme");
    const started = Promise.withResolvers<void>();
    const running = sandbox.exec({ command: "sleep 905" }, { onStarted: () => started.resolve() });
    await started.promise;
    const container = docker.getContainer(id);
    const stream = await container.attach({ stream: true, stdin: true, hijack: true });
    stream.write(hello(2, "other"));
    // A later epoch has spoken, so its holder is fenced, and its command is gone.
    await expect(running).rejects.toThrow("obeys epoch 2");
    await expect.poll(async () => (await container.top()).Processes.length, { timeout: 20_000 }).toBe(1);
    (stream as unknown as { destroy(): void }).destroy();
    const next = await host.sandbox({ epoch: 3 }, driver);
    expect((await driver.list()).filter(({ key }) => key === "acme")).not.toMatchObject([{ id }]);
    expect(shown(await next.exec({ command: "echo fine" })).stdout).toBe("fine\n");
  });

  test("a container of the warm pool runs only init before its sandbox, and serves no other", async ({
    host,
    warm,
  }) => {
    const driver = await warm.driver();
    const [{ id } = { id: "" }] = await driver.list();
    const container = docker.getContainer(id);
    expect((await container.top()).Processes).toHaveLength(1);
    const sandbox = await host.sandbox({ epoch: 1 }, driver);
    await sandbox.exec({ command: "(setsid sleep 906 &) ; exec 9>/workspace/held; (sleep 907 <&9 &) ; :" });
    await sandbox.stop();
    await expect(container.inspect()).rejects.toMatchObject({ statusCode: 404 });
    await warm.ready(driver);
    const other = await host.sandbox({ epoch: 1, key: "other" }, driver);
    expect(shown(await other.exec({ command: "ls -A /workspace /tmp; pgrep -c sleep" })).stdout).toBe(
      "/tmp:\n\n/workspace:\n0\n",
    );
  });

  test("a container of the warm pool gives its commands no way around the mount: no descriptor, no path, no call", async ({
    host,
    warm,
  }) => {
    const driver = await warm.driver();
    const sandbox = await host.sandbox({ epoch: 1 }, driver);
    const plain = await host.sandbox({ epoch: 1, key: "plain" }, host.driver());
    await writeFile(join(host.workspacesRoot, "secret"), "of the host\n", { mode: 0o644 });
    const command = `
ls -l /proc/self/fd | awk '{print $9, $11}' | grep -v pipe | grep -v /proc/
ls /workspace/.. | tr '\\n' ' '
cat ../secret ../../secret ../../../../secret /proc/self/cwd/../secret 2>&1 | cut -d: -f3
umount /workspace 2>&1 | grep -c -e denied -e permitted -e superuser
umount /.berth/link 2>&1 | grep -c -e denied -e permitted -e superuser
mount -t tmpfs x /tmp 2>&1 | grep -c -e denied -e permitted -e superuser
python3 -c "
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for number in (428, 429, 430, 431, 432, 433, 442, 308):
    print(number, libc.syscall(number, -100, b'/workspace', 1, 0, 0), ctypes.get_errno())
print(libc.unshare(0x10000000), ctypes.get_errno())"
cp /bin/id suid && chmod 6755 suid && ./suid -u | wc -l; stat -c %A suid
ls -A /.berth /.berth/link | tr '\\n' ' '
ls /proc/1/fd /proc/1/root 2>&1 | grep -c denied`;
    const facts = async (one: typeof sandbox) => shown(await one.exec({ command })).stdout;
    expect(await facts(sandbox)).toBe(await facts(plain));
    expect(await facts(sandbox)).not.toContain("of the host");
  });

  test("a container of the warm pool sees nothing of what the host mounts later, beneath its workspace or elsewhere", async ({
    host,
    warm,
  }) => {
    const driver = await warm.driver();
    const sandbox = await host.sandbox({ epoch: 1 }, driver);
    const inside = join(host.workspacesRoot, "acme", "mounted");
    await mkdir(inside);
    await run("mount", ["-t", "tmpfs", "none", inside]);
    try {
      await writeFile(join(inside, "of-the-host"), "");
      const { stdout } = shown(
        await sandbox.exec({ command: "ls -A mounted; grep -c mounted /proc/self/mountinfo" }),
      );
      expect(stdout).toBe("0\n");
    } finally {
      await run("umount", [inside]);
      await rm(inside, { recursive: true });
    }
  });

  test("an image whose labels name its container one of the warm pool's gets it neither removed nor counted", async ({
    host,
    warm,
  }) => {
    const pool = await warm.driver();
    const filters = { label: [`berth.fleet=${host.fleet}`, "berth.warm"] };
    const [waiting] = await docker.listContainers({ filters });
    const [scope = ""] = waiting?.Labels["berth.warm"]?.split(".") ?? [];
    expect(scope).toMatch(/^[0-9a-f]+$/);
    await pool.stopWarming();
    const [repo, tag] = [`berth-labelled-${process.pid}`, "test"];
    const base = await docker.createContainer({ Image: "berth-busybox:test" });
    await base.commit({ repo, tag, changes: [`LABEL berth.warm=${scope}.7 berth.sandbox-key=other`] });
    await base.remove();
    onTestFinished(() => docker.getImage(`${repo}:${tag}`).remove({ force: true }));
    const worker = workerId.parse("worker-1");
    const sandbox = await host.sandbox(
      { epoch: 1, profile: { image: `${repo}:${tag}` } },
      host.driver({ worker }),
    );
    // It looks for what an earlier life of its worker left.
    await warm.driver({ count: 1, most: 1 }, {}, worker);
    expect(shown(await sandbox.exec({ command: "echo fine" })).stdout).toBe("fine\n");
    expect(sandbox.origin.restarts).toBe(0);
  });

  test("a container of the warm pool owns the files of its own sandbox only", async ({ host, warm }) => {
    const driver = await warm.driver();
    const plain = await host.sandbox({ epoch: 1 }, host.driver());
    await plain.files.write("mine", "x");
    await plain.stop();
    // Left in the workspace by the host's operator.
    const foreign = join(host.workspacesRoot, "acme", "root-only");
    await writeFile(foreign, "of root\n", { mode: 0o600 });
    const sandbox = await host.sandbox({ epoch: 2 }, driver);
    expect(sandbox.origin.how).toBe("warm");
    const { stdout } = shown(
      await sandbox.exec({
        command:
          "cat root-only 2>&1; chmod 644 root-only 2>&1; ln root-only linked 2>&1; stat -c %u root-only; cat mine; chown 0 mine 2>&1 | wc -l",
      }),
    );
    expect(stdout).not.toContain("of root");
    expect(stdout).toMatch(/65534\nx1\n$/);
    expect(await readFile(foreign, "utf8")).toBe("of root\n");
  });
});
