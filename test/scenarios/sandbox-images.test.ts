import { copyFile, rename, writeFile } from "node:fs/promises";
import { initBinaryPath } from "@berth/init";
import { isFault } from "@berth/protocol";
import type { PullProgress } from "@berth/sandbox";
import Docker from "dockerode";
import { describe, expect } from "vitest";
import { startRequest, test } from "../support/host.ts";
import { startRegistry } from "../support/registry.ts";
import { shown } from "../support/shown.ts";

const docker = new Docker(
  process.env.DOCKER_HOST?.startsWith("unix://") ? { socketPath: process.env.DOCKER_HOST.slice(7) } : {},
);

/** An ELF header of another machine: what an init of a foreign architecture amounts to. */
function foreignProgram(): Buffer {
  const header = Buffer.alloc(64);
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  header.writeUInt16LE(2, 16);
  header.writeUInt16LE(0xf3f3, 18);
  return header;
}

describe("any image with an sh", () => {
  test("any image with an sh works: two megabytes of busybox", async ({ host }) => {
    const sandbox = await host.sandbox({ profile: { image: "berth-busybox:test" } });
    await sandbox.files.write("in.txt", "3\n1\n2\n");
    expect(shown(await sandbox.exec({ command: "sort in.txt | tee out.txt" })).stdout).toBe("1\n2\n3\n");
    expect(Buffer.from((await sandbox.files.read("out.txt")).bytes).toString()).toBe("1\n2\n3\n");
    const { Size } = await docker.getImage("berth-busybox:test").inspect();
    expect(Size).toBeLessThan(4_000_000);
  });

  test("any image with an sh works with any ENTRYPOINT and USER", async ({ host }) => {
    const image = "berth-entrypoint:test";
    const { Config } = await docker.getImage(image).inspect();
    expect([Config.Entrypoint, Config.User]).not.toContain(null);
    expect(Config.User).not.toBe("");
    const sandbox = await host.sandbox({ profile: { image } });
    const result = shown(await sandbox.exec({ command: "echo $$ ran as $(id -u)" }));
    expect(result.stdout).toMatch(/^\d+ ran as \d+\n$/);
    expect(result.stdout).not.toContain(` ${Config.User}\n`);
  });

  test("an image that is missing and cannot be pulled is the fault image-missing", async ({ host }) => {
    const profile = { image: "localhost:1/no-such-image:none" };
    await expect(host.driver().start(startRequest({ profile }))).rejects.toSatisfy(
      (error) => isFault(error, "image-missing") && error.message.includes("localhost:1/no-such-image:none"),
    );
  });

  test("an image that is missing is pulled, and the pull's progress is reported", async ({ host }) => {
    const registry = await startRegistry([{ path: "etc/pulled", bytes: Buffer.alloc(3_000_000, "x") }]);
    const progress: PullProgress[] = [];
    try {
      const driver = host.driver({ onPull: (step) => progress.push(step) });
      const profile = { image: registry.image };
      const sandbox = await host.sandbox({ profile }, driver);
      expect((await sandbox.exec({ argv: ["sh"] })).outcome).toMatchObject({ code: "command-not-found" });
      expect((await sandbox.files.stat("")).type).toBe("directory");
      expect(progress.map(({ status }) => status).join("\n")).toMatch(/Pull(ing|ed| complete)/);
      await sandbox.stop();
    } finally {
      await registry.stop();
      await docker
        .getImage(registry.image)
        .remove({ force: true })
        .catch(() => {});
    }
  });

  test("no image is started where init was built for another machine, and the fault names what to do", async ({
    host,
  }) => {
    const initPath = `${host.workspacesRoot}/foreign-init`;
    await writeFile(initPath, foreignProgram(), { mode: 0o755 });
    const driver = host.driver({ initPath });
    await expect(driver.start(startRequest())).rejects.toSatisfy(
      (error) => isFault(error, "init-foreign") && /exec format error/i.test(error.message),
    );
    expect(await driver.list()).toEqual([]);
  });

  test("an init that fails to start is a fault with the reason, and the sandbox starts once init works", async ({
    host,
  }) => {
    const initPath = `${host.workspacesRoot}/failing-init`;
    await writeFile(
      initPath,
      "#!/bin/sh\necho '/workspace: permission denied: no such file or directory' >&2; exit 1\n",
      { mode: 0o755 },
    );
    const driver = host.driver({ initPath });
    const failed = (error: unknown) =>
      isFault(error, "sandbox-start-failed") && error.message.includes("permission denied");
    await expect(driver.start(startRequest())).rejects.toSatisfy(failed);
    await rename(initPath, `${initPath}.failed`);
    await copyFile(initBinaryPath, initPath);
    expect((await host.sandbox({}, driver)).origin.how).toBe("started");
  });

  test("a start without a built init is refused", async ({ host }) => {
    const driver = host.driver({ initPath: "/no/such/init" });
    await expect(driver.start(startRequest())).rejects.toSatisfy((error) => isFault(error, "init-missing"));
  });
});
