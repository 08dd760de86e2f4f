import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { busybox, type TestFleet, test } from "../support/fleet.ts";

const done = { kind: "done" };

async function onDisk(fleet: TestFleet): Promise<string[]> {
  const names = await readdir(join(fleet.workspaces, ".snapshots")).catch(() => []);
  return names.map((name) => name.split(".").slice(0, 2).join("."));
}

describe("snapshot", () => {
  test("a snapshot is restored into the workspace as it was, is listed with its size, and is gone when it is removed", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const acme = fleet.client().tenant("acme");
    await acme.copy({ "src/a.txt": "one", "src/b.txt": "x".repeat(20_000) });
    const made = await acme.snapshot("base");
    expect(made).toMatchObject({ outcome: done, name: "base", count: 3 });
    expect(made.size).toBeGreaterThan(20_000);
    await acme.exec("echo two > src/a.txt; rm src/b.txt; echo new > new");
    expect(await acme.restore("base")).toMatchObject({ outcome: done, name: "base", count: 3 });
    expect((await acme.list("", { recursive: true })).entries?.map(({ path }) => path)).toEqual([
      "src",
      "src/a.txt",
      "src/b.txt",
    ]);
    expect((await acme.read("src/a.txt")).content).toBe("one");
    expect(await acme.snapshots()).toMatchObject([
      { name: "base", sandbox: "acme", count: 3, size: made.size, method: made.method },
    ]);

    const again = await acme.snapshot("base");
    expect(again.outcome).toMatchObject({ kind: "refused", code: "snapshot-refused" });
    await acme.write("src/a.txt", "three");
    expect((await acme.snapshot("base", { replace: true })).outcome).toEqual(done);
    await expect.poll(() => onDisk(fleet)).toEqual(["acme.base"]);
    await acme.remove("src", { recursive: true });
    await acme.restore("base");
    expect((await acme.read("src/a.txt")).content).toBe("three");

    expect(await acme.removeSnapshot("base")).toBe(true);
    expect(await acme.removeSnapshot("base")).toBe(false);
    expect(await acme.snapshots()).toEqual([]);
    expect((await acme.restore("base")).outcome).toMatchObject({ code: "snapshot-unknown" });
    await expect.poll(() => onDisk(fleet), { timeout: 20_000 }).toEqual([]);
    const redis = fleet.redis.connect();
    await expect.poll(() => redis.exists(redisKeys.droppedSnapshots("acme"))).toBe(0);
  });

  test("a snapshot expires when its time is over", async ({ fleet }) => {
    await fleet.worker("worker-1", busybox);
    const acme = fleet.client().tenant("acme");
    await acme.write("a", "b");
    const made = await acme.snapshot("short", { ttlMs: 1_500 });
    expect(made.expiresAtMs).toBeGreaterThan(0);
    await expect.poll(() => acme.snapshots()).toEqual([]);
    await expect.poll(() => onDisk(fleet), { timeout: 20_000 }).toEqual([]);
    expect(await fleet.redis.connect().hlen(redisKeys.snapshots("acme"))).toBe(0);
  });

  test("a snapshot waits for the commands of other sessions, and ends what they left in the background", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const acme = fleet.client().tenant("acme");
    const writing = await acme
      .exec("echo started > state; sleep 1001 & sleep 1000", {
        session: "other",
      })
      .enqueued();
    await expect.poll(async () => (await acme.read("state", { session: "third" })).content).toBe("started\n");
    const snapshot = await acme.snapshot("base").enqueued();
    await expect.poll(() => snapshot.status()).toBe("waiting");
    expect(await acme.snapshots()).toEqual([]);
    // Behind a job that waits for the sandbox to itself.
    const behind = await acme.exec("cat state", { session: "third" }).enqueued();
    await writing.cancel();
    const { outcome, timing } = await snapshot.result;
    expect(outcome).toEqual(done);
    expect((await behind.result).timing.startedAtMs).toBeGreaterThanOrEqual(timing.finishedAtMs ?? 0);
    await acme.restore("base");
    expect((await acme.exec("pgrep sleep | wc -l")).stdout).toBe("0\n");
  });
});

describe("fork", () => {
  test("a fork starts with the snapshot's files in a sandbox of its own, and changes nothing anywhere else", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    await acme.exec(
      "echo base > file; mkdir bin; printf '#!/bin/sh\\necho ran\\n' > bin/tool; chmod +x bin/tool",
    );
    await acme.snapshot("env");
    const forks = berth.fork({ tenant: "acme", name: "env" }, 3);
    const outputs = await Promise.all(
      forks.map((fork, index) => fork.exec(`cat file; bin/tool; echo ${index} > file; cat file`)),
    );
    expect(outputs.map(({ stdout }) => stdout)).toEqual([0, 1, 2].map((index) => `base\nran\n${index}\n`));
    expect((await acme.read("file")).content).toBe("base\n");
    expect((await forks[1]?.read("file"))?.content).toBe("1\n");
    // Removing the snapshot changes nothing in its forks.
    await acme.removeSnapshot("env");
    await forks[0]?.remove("file");
    expect((await forks[0]?.stat("file"))?.outcome).toMatchObject({ code: "not-found" });
    expect((await forks[2]?.read("file"))?.content).toBe("2\n");
    await forks[1]?.destroy();
    expect((await forks[1]?.exec("cat file"))?.outcome).toMatchObject({ code: "snapshot-unknown" });
  });

  test("a fork of a job's own goes when the job has ended, and each run finds the snapshot's files again", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const acme = fleet.client().tenant("acme");
    await acme.write("seed", "s");
    await acme.snapshot("env");
    const runs = ["a", "b", "c"].map((name) =>
      acme.exec(`ls; echo ${name} > ${name}; ls; test ${name} != b`, { forkOf: "env", artifacts: ["*"] }),
    );
    expect((await Promise.all(runs)).map(({ stdout }) => stdout)).toEqual(
      ["a", "b", "c"].map((name) => `seed\n${name}\nseed\n`),
    );
    expect((await Promise.all(runs)).map(({ artifacts }) => artifacts?.length)).toEqual([2, 2, 2]);
    await expect
      .poll(async () => (await readdir(fleet.workspaces)).filter((name) => name.includes(".s.fork-")))
      .toEqual([]);
    expect((await acme.list()).entries?.map(({ path }) => path)).toEqual(["seed"]);
  });

  test("a fork is refused where the sandbox has files that are not the snapshot's", async ({ fleet }) => {
    await fleet.worker("worker-1", busybox);
    const acme = fleet.client().tenant("acme");
    await acme.write("seed", "s");
    await acme.snapshot("env");
    const own = { scope: "session", session: "own" } as const;
    await acme.write("mine", "m", own);
    const refusal = { kind: "refused", code: "snapshot-refused" };
    expect((await acme.exec("ls", { ...own, forkOf: "env" })).outcome).toMatchObject(refusal);
    expect((await acme.read("mine", own)).content).toBe("m");
    expect((await acme.exec("ls", { forkOf: "nothing" })).outcome).toMatchObject({
      code: "snapshot-unknown",
    });
  });

  test("a fork takes the place of an empty workspace, whether its container runs or is parked", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", { ...busybox, BERTH_MAX_SANDBOXES: "1", BERTH_QUANTUM_MS: "300" });
    const acme = fleet.client().tenant("acme");
    await acme.write("seed", "s");
    await acme.snapshot("env");
    const live = { scope: "session", session: "live" } as const;
    await acme.exec("true", live);
    const forked = await acme.exec("cat seed; echo more > more; ls", { ...live, forkOf: "env" });
    expect(forked).toMatchObject({ outcome: { kind: "exited", code: 0 }, stdout: "s" + "more\nseed\n" });
    expect((await acme.exec("cat more", live)).stdout).toBe("more\n");

    // Its user is the snapshot's: nothing but the directory beneath a parked container would be another.
    const parked = { scope: "session", session: "parked" } as const;
    await acme.write("seed", "s", parked);
    await acme.snapshot("own", parked);
    await acme.exec("rm seed", parked);
    await fleet.client().tenant("other").exec("true");
    expect((await fleet.parked()).map(({ key }) => key)).toContain("acme.s.parked");
    expect((await acme.exec("cat seed; ls", { ...parked, forkOf: "own" })).stdout).toBe("sseed\n");
  });

  test("a job that is refused as a fork of a snapshot leaves the container of an empty workspace usable", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const acme = fleet.client().tenant("acme");
    const own = { scope: "session", session: "own" } as const;
    await acme.exec("true", own);
    expect((await acme.exec("ls", { ...own, forkOf: "nothing" })).outcome).toMatchObject({
      code: "snapshot-unknown",
    });
    expect((await acme.write("mine", "m", own)).outcome).toEqual(done);
    expect((await acme.read("mine", own)).content).toBe("m");
  });

  test("a fork runs on the host that has the snapshot, and why names that host when it is away", async ({
    fleet,
  }) => {
    const places = (host: string) => ({
      ...busybox,
      BERTH_HOST: host,
      BERTH_WORKSPACES: join(fleet.workspaces, host),
    });
    const first = await fleet.worker("worker-1", places("host-1"));
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    await acme.write("seed", "s");
    await acme.snapshot("env");
    expect(await acme.snapshots()).toMatchObject([{ host: "host-1" }]);
    await fleet.worker("worker-2", places("host-2"));
    const results = await Promise.all(
      Array.from({ length: 4 }, (_, index) => acme.exec("cat seed", { forkOf: "env", session: `s${index}` })),
    );
    expect(results.map(({ stdout }) => stdout)).toEqual(["s", "s", "s", "s"]);
    expect(
      new Set(
        await Promise.all(
          [0, 1, 2, 3].map(
            async (n) => (await berth.sandboxes()).find(({ key }) => key === `acme.s.s${n}`)?.home,
          ),
        ),
      ),
    ).toEqual(new Set(["host-1"]));
    await first.stopped(40_000);
    const waiting = await acme.exec("cat seed", { forkOf: "env", session: "late" }).enqueued();
    await expect
      .poll(async () => (await berth.why(waiting.id)).reasons.join(), { timeout: 30_000 })
      .toMatch(/host-1/);
    await fleet.worker("worker-3", places("host-1"));
    expect((await waiting.result).value.stdout).toBe("s");
  });
});
