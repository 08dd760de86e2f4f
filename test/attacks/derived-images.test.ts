import { randomUUID } from "node:crypto";
import { describe, expect, onTestFinished } from "vitest";
import { machineEngine } from "../support/engine.ts";
import { busybox, test } from "../support/fleet.ts";

const docker = machineEngine();

/** Images that a set-up command as root has left, by what it printed. */
async function derivedBy(mark: string): Promise<string[]> {
  const all = await docker.listImages({ filters: { reference: ["berth-derived"] } });
  const names = all.flatMap(({ RepoTags }) => RepoTags ?? []);
  const found = await Promise.all(
    names.map(async (name) => {
      const image = await docker
        .getImage(name)
        .inspect()
        .catch(() => undefined);
      return image?.Comment.includes(mark) ? [name] : [];
    }),
  );
  return found.flat();
}

describe("tenant that varies its settings", () => {
  test("a tenant that varies its settings has no further image made on the engine's disk, and gets what it asked for", async ({
    fleet,
  }) => {
    const mark = randomUUID();
    onTestFinished(async () => {
      for (const name of await derivedBy(mark)) await docker.getImage(name).remove({ force: true });
    });
    const Name = `berth-test-${mark}`;
    const made = await docker.createNetwork({ Name, Internal: true });
    onTestFinished(() => made.remove());
    const berth = fleet.client();
    await berth.profiles.set("profile.default", {
      network: Name,
      setup: { root: true, command: `echo ${mark}; echo installed > /etc/marker` },
    });
    await fleet.worker("worker-1", { ...busybox, BERTH_WARM_COUNT: "0" });
    const acme = berth.tenant("acme");
    const variations = [
      {},
      { limits: { openFiles: 600 } },
      { limits: { openFiles: 601, pids: 64 } },
      { limits: { memoryBytes: "100m", cpus: 0.5, openFiles: 602 } },
      { network: "none", limits: { openFiles: 603 } },
    ] as const;
    for (const settings of variations) {
      const said = await acme.exec("cat /etc/marker; ulimit -n", { settings });
      const files = "limits" in settings ? settings.limits.openFiles : 4_096;
      expect(said.stdout).toBe(`installed\n${files}\n`);
    }
    await berth.profiles.set("tenant.globex", { limits: { openFiles: 700, memoryBytes: "90m" } });
    expect((await berth.tenant("globex").exec("cat /etc/marker")).stdout).toBe("installed\n");
    expect(await derivedBy(mark)).toHaveLength(1);
  });
});
