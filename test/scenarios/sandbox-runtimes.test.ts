import { isFault } from "@berth/protocol";
import { DockerDriver } from "@berth/sandbox";
import { describe, expect } from "vitest";
import { startRequest, test } from "../support/host.ts";
import { shown } from "../support/shown.ts";

const report = await new DockerDriver({
  fleet: "probe" as never,
  worker: "probe" as never,
  workspacesRoot: "/nonexistent",
  engineHost: process.env.DOCKER_HOST,
}).check();
const withGvisor = report.runtimes.includes("runsc");
if (!withGvisor) console.log("gVisor is not registered with this engine as runsc: its tests are skipped");

describe("runtimes", () => {
  test("a runtime that the engine does not have is a fault that names those it has", async ({ host }) => {
    const profile = { runtime: "no-such-runtime" };
    await expect(host.driver().start(startRequest({ profile }))).rejects.toSatisfy(
      (error) => isFault(error, "runtime-missing") && error.context.available.includes("runc"),
    );
  });
});

describe.skipIf(!withGvisor)("gVisor, through the same driver", () => {
  const profile = { runtime: "runsc" };

  test("gVisor, through the same driver runs commands on its own kernel", async ({ host }) => {
    const sandbox = await host.sandbox({ profile });
    const result = shown(await sandbox.exec({ command: "dmesg | head -n 1; cat; exit 5", stdin: "through" }));
    expect(result).toMatchObject({ outcome: { kind: "exited", code: 5 } });
    expect(result.stdout).toMatch(/gVisor[\s\S]*through$/);
  });

  test("gVisor, through the same driver touches files, ends trees and finds links that lead out", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    await sandbox.files.write("a/b.txt", "bytes");
    expect(Buffer.from((await sandbox.files.read("a/b.txt")).bytes).toString()).toBe("bytes");
    await sandbox.exec({ command: "ln -s /etc/passwd out" });
    await expect(sandbox.files.read("out")).rejects.toThrow("leads out of the workspace");
    expect((await sandbox.files.grep("byt")).items).toHaveLength(1);
    const command = "(setsid sleep 1240 &); sleep 1240";
    const { outcome } = await sandbox.exec({ command, limits: { timeoutMs: 1_000, graceMs: 200 } });
    expect(outcome).toEqual({ kind: "timed-out", afterMs: 1_000 });
    expect(shown(await sandbox.exec({ command: "ps -e -o args= | grep -c '[s]leep 1240'" })).stdout).toBe(
      "0\n",
    );
  });

  test("gVisor, through the same driver is adopted after a restart of its worker", async ({ host }) => {
    const first = await host.sandbox({ profile, epoch: 1 });
    await first.exec({ command: "echo warm > /tmp/warm" });
    first.detach();
    const second = await host.sandbox({ profile, epoch: 2 });
    expect(second.origin.how).toBe("adopted");
    expect(shown(await second.exec({ command: "cat /tmp/warm" })).stdout).toBe("warm\n");
  });
});
