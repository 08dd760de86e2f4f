import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Berth } from "@berth/client";
import type { NamedLayerInput } from "@berth/protocol";
import { describe, expect } from "vitest";
import { busybox, type TestFleet, type TestWorker, test } from "../support/fleet.ts";

const pidsMax = "cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null";
const pidsOf = async (berth: Berth, tenant: string, agent?: string) =>
  (await berth.tenant(tenant).exec(pidsMax, agent === undefined ? {} : { agent })).stdout.trim();

/** Returns when the worker has heard of it. */
async function set(
  berth: Berth,
  worker: TestWorker,
  layer: string,
  settings: NamedLayerInput | null,
): Promise<number> {
  const { version } = await berth.profiles.set(layer, settings, { by: "test" });
  await expect.poll(() => worker.log).toContain(`"layer":"${layer}","version":${version}`);
  return version;
}

async function workerWith(fleet: TestFleet, yaml: string): Promise<TestWorker> {
  const file = join(fleet.workspaces, "..", "worker.yaml");
  await writeFile(file, yaml);
  return await fleet.worker("worker-1", { ...busybox, BERTH_CONFIG: file });
}

test("a profile that passes USER on gives commands the worker's, and the sandbox's where the worker has none", async ({
  fleet,
}) => {
  const berth = fleet.client();
  const userOf = async () => (await berth.tenant("acme").exec("echo $USER $LOGNAME")).stdout;
  const named = await fleet.worker("named", { ...busybox, USER: "ops" });
  expect(await userOf()).toBe("sandbox sandbox\n");
  await set(berth, named, "profile.default", { passthroughEnv: ["USER"] });
  expect(await userOf()).toBe("ops sandbox\n");
  named.signal("SIGTERM");
  await named.ended();
  await fleet.worker("unnamed", busybox);
  expect(await userOf()).toBe("sandbox sandbox\n");
});

describe("live change of a profile", () => {
  test("a live change of a profile rebuilds an idle sandbox before its next job, a busy one after it, and no other", async ({
    fleet,
  }) => {
    const worker = await workerWith(fleet, "profiles: { default: { limits: { pids: 100 } } }\n");
    const berth = fleet.client();
    expect([await pidsOf(berth, "acme"), await pidsOf(berth, "globex")]).toEqual(["100", "100"]);
    const container = async (key: string) => (await fleet.containers()).find((one) => one.key === key)?.id;
    const before = { acme: await container("acme"), globex: await container("globex") };
    const waiting = "touch /tmp/mark started; until test -e go; do sleep 0.05; done; ls /tmp/mark";
    const busy = await berth.tenant("acme").exec(waiting).enqueued();
    await expect.poll(() => busy.status()).toBe("running");
    await set(berth, worker, "tenant.acme", { limits: { pids: 64 } });
    const next = berth.tenant("acme").exec(pidsMax, { session: "next" });
    await next.enqueued();
    expect(await container("acme")).toBe(before.acme);
    await writeFile(join(fleet.workspaces, "acme", "go"), "");
    expect((await busy.result).value.stdout).toBe("/tmp/mark\n");
    expect((await next).stdout.trim()).toBe("64");
    expect(await container("acme")).not.toBe(before.acme);
    await set(berth, worker, "tenant.acme", null);
    expect(await pidsOf(berth, "acme")).toBe("100");
    expect([await pidsOf(berth, "globex"), await container("globex")]).toEqual(["100", before.globex]);
  });

  test("a live change of a profile is made of the layers above it, and a worker that starts later knows it", async ({
    fleet,
  }) => {
    const berth = fleet.client();
    await berth.profiles.set("profile.default", { limits: { pids: 200 } });
    await berth.profiles.set("profile.small", { limits: { pids: 50 } });
    await berth.profiles.set("fleet", { limits: { pids: 150 } });
    await berth.profiles.set("agent.acme.coder", { limits: { pids: 0, openFiles: 600 } });
    await berth.profiles.set("tenant.globex", { profile: "small" });
    await berth.tenant("globex").grant({ profiles: ["small"] });
    await workerWith(fleet, "profiles: { default: { limits: { pids: 100 } } }\n");
    const limits = async (tenant: string, options: object = {}) =>
      (await berth.tenant(tenant).exec(`${pidsMax}; ulimit -n`, options)).stdout.trim().split("\n");
    expect(await limits("acme")).toEqual(["150", "4096"]);
    expect(await limits("acme", { agent: "coder" })).toEqual(["150", "600"]);
    expect(await limits("globex")).toEqual(["50", "4096"]);
    expect(await limits("globex", { settings: { limits: { openFiles: 700 } } })).toEqual(["50", "700"]);
    expect(await limits("globex", { profile: "default" })).toEqual(["150", "4096"]);
  });

  test("a live change of a profile switches sandboxes off and on, and refuses jobs that then have none", async ({
    fleet,
  }) => {
    const worker = await workerWith(fleet, "BERTH_MODE: non-main\n");
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    const said = "/exec is disabled in this execution context — the agents main and default have no sandbox";
    expect((await acme.exec("echo hi")).text).toBe(`ERR: ${said}, and nothing runs outside of one`);
    expect((await acme.write("a", "x", { agent: "main" })).outcome).toMatchObject({
      kind: "refused",
      code: "sandbox-disabled",
    });
    expect((await acme.exec("echo hi", { agent: "coder" })).stdout).toBe("hi\n");
    await set(berth, worker, "fleet", { mode: "off" });
    const off = await acme.exec("echo hi", { agent: "coder" });
    expect(off.text).toContain("/exec is disabled in this execution context — sandboxes are switched off");
    await set(berth, worker, "fleet", null);
    await set(berth, worker, "profile.default", { mode: "all" });
    expect((await acme.exec("echo hi")).stdout).toBe("hi\n");
    await set(berth, worker, "tenant.acme", { mode: "off" });
    expect((await acme.run({ kind: "destroy" })).outcome).toEqual({ kind: "done" });
  });

  test("a live change of a profile bounds a whole job, its workspace's access and its mounts, and a sandbox can be destroyed all the same", async ({
    fleet,
  }) => {
    const data = join(fleet.workspaces, "..", "data");
    await mkdir(data);
    await writeFile(join(data, "in.csv"), "1,2\n");
    const berth = fleet.client();
    await berth.profiles.set("profile.default", {
      mountable: { data: { source: data, target: "/mnt/data" }, etc: { source: "/etc", target: "/mnt/etc" } },
      jobTimeoutMs: "20s",
    });
    await fleet.worker("worker-1", { ...busybox, BERTH_MOUNTS: data });
    const acme = berth.tenant("acme");
    await acme.write("kept", "kept\n");
    const settings = { workspace: "ro" as const, mounts: ["data"], jobTimeoutMs: "1s" };
    const read = await acme.exec("cat kept /mnt/data/in.csv; rm kept; echo x > /mnt/data/new", { settings });
    expect(read.stdout).toBe("kept\n1,2\n");
    expect((await acme.write("kept", "no", { settings })).outcome).toMatchObject({
      kind: "refused",
      code: "denied",
    });
    const steps = [1, 2, 3].map(() => ({ kind: "exec" as const, command: "echo step; sleep 0.6" }));
    const late = await acme.run({ kind: "steps", steps }, { settings });
    expect(late.outcome).toEqual({ kind: "timed-out", afterMs: 1_000 });
    expect(late.steps?.[0]).toMatchObject({ outcome: { kind: "exited", code: 0 } });
    const refused = async (mounts: string[]) =>
      (await acme.exec("ls /mnt", { settings: { mounts } })).outcome;
    expect(await refused(["secret"])).toMatchObject({ kind: "refused", code: "not-granted" });
    expect(await refused(["etc"])).toMatchObject({ kind: "refused", code: "mount-refused" });
    expect((await acme.run({ kind: "destroy" }, { settings: { workspace: "none" } })).outcome).toEqual({
      kind: "done",
    });
    expect((await acme.exec("ls")).stdout).toBe("");
  });

  test("a live change of a profile sets a sandbox up before its first job, and refuses jobs of one that cannot be", async ({
    fleet,
  }) => {
    const worker = await workerWith(
      fleet,
      "profiles: { default: { setup: { command: echo ready > /tmp/set } } }\n",
    );
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    expect((await acme.exec("cat /tmp/set")).stdout).toBe("ready\n");
    const shown = async () => (await berth.sandboxes({ tenant: "acme" }))[0]?.setUp;
    await expect.poll(shown).toMatchObject({ ok: true, how: "exited 0", output: "" });
    await set(berth, worker, "profile.default", { setup: { command: "echo no mirror; exit 7" } });
    const refused = await acme.exec("echo never > ran");
    expect(refused.outcome).toMatchObject({
      kind: "refused",
      code: "setup-failed",
      message: expect.stringContaining("exited 7; its last output: no mirror"),
    });
    await expect.poll(shown).toMatchObject({ ok: false, how: "exited 7", output: "no mirror\n" });
    // Its files can be removed all the same, and the next job tries again.
    expect((await acme.write("kept", "x")).outcome).toMatchObject({ code: "setup-failed" });
    expect((await acme.destroy()).outcome).toEqual({ kind: "done" });
    await set(berth, worker, "profile.default", { setup: { command: "echo now > /tmp/set" } });
    expect((await acme.exec("cat /tmp/set; ls")).stdout).toBe("now\n");
  });

  test("a live change of a profile bounds how many of a sandbox's jobs run at once", async ({ fleet }) => {
    await workerWith(fleet, "BERTH_PARALLEL: 2\nprofiles: { one: { parallel: 1 } }\n");
    const berth = fleet.client();
    await berth.tenant("acme").grant({ profiles: ["one"] });
    const command = "echo + >> log; sleep 0.4; echo - >> log";
    const most = async (key: string, profile: string) => {
      const jobs = [1, 2, 3].map((n) => berth.tenant(key).exec(command, { session: `s${n}`, profile }));
      await Promise.all(jobs);
      const { stdout } = await berth.tenant(key).exec("cat log; rm log");
      let running = 0;
      return Math.max(
        ...stdout
          .trim()
          .split("\n")
          .map((sign) => (running += sign === "+" ? 1 : -1)),
      );
    };
    expect(await most("globex", "default")).toBe(2);
    await berth.profiles.set("tenant.acme", { profile: "one" });
    expect(await most("acme", "one")).toBe(1);
  });

  test("a live change of a profile gives tenants turns by their weights", async ({ fleet }) => {
    const one = "BERTH_MAX_RUNNING: 1\nBERTH_PARALLEL: 12\nprofiles: { large: { weight: 300 } }\n";
    await workerWith(fleet, one);
    const berth = fleet.client();
    await berth.profiles.set("tenant.globex", { profile: "large" });
    await berth.tenant("globex").grant({ profiles: ["large"] });
    const tenants = ["acme", "globex"];
    for (const tenant of tenants) await berth.tenant(tenant).exec("true");
    // Until all wait, nothing else runs.
    const gate = await berth.tenant("initech").exec("until [ -e go ]; do sleep 0.05; done").enqueued();
    await expect.poll(() => gate.status()).toBe("running");
    const ends: string[] = [];
    const jobs = Array.from({ length: 12 }, (_, n) =>
      tenants.map((tenant) => berth.tenant(tenant).exec("sleep 0.1", { session: `s${n}` })),
    ).flat();
    const ended = jobs.map(async (job, index) => {
      await job;
      ends.push(tenants[index % 2] ?? "");
    });
    await expect
      .poll(async () => (await berth.why((await jobs.at(-1)?.enqueued())?.id ?? "")).codes)
      .toEqual(["about-to-begin"]);
    await writeFile(join(fleet.workspaces, "initech", "go"), "");
    await Promise.all(ended);
    const early = ends.slice(0, 12).filter((tenant) => tenant === "globex").length;
    expect(early).toBeGreaterThanOrEqual(8);
    expect(early).toBeLessThanOrEqual(10);
  });

  test("a live change of a profile gives up a sandbox by its own idle time or age", async ({ fleet }) => {
    await workerWith(fleet, "BERTH_IDLE_MS: 1h\n");
    const berth = fleet.client();
    await berth.tenant("acme").exec("true", { settings: { idleMs: "100ms" } });
    await berth.tenant("globex").exec("true");
    await berth.tenant("initech").exec("true", { settings: { maxAgeMs: "200ms" } });
    await expect.poll(async () => (await fleet.containers()).map(({ key }) => key)).toEqual(["globex"]);
  });
});

describe("layer", () => {
  test("a layer that is not valid is refused as a whole, with every reason", async ({ fleet }) => {
    const { profiles } = fleet.client();
    const refused = async (layer: string, settings: unknown) => {
      const error = await profiles.set(layer, settings as NamedLayerInput).catch((one: unknown) => one);
      expect(await profiles.get(layer)).toBeUndefined();
      return (error as { context: { problems: string[] } }).context.problems;
    };
    expect(await refused("tenant.acme", { runtime: "runc", limits: { cpus: "many", gpus: 1 } })).toEqual([
      expect.stringContaining("limits.cpus: it is a number"),
      expect.stringContaining("limits: Unrecognized key"),
      expect.stringContaining('Unrecognized key: "runtime"'),
    ]);
    expect(await refused("profile.net", { network: "host" })).toEqual([
      expect.stringContaining("network: a network is none, bridge, or the name of one"),
    ]);
    await expect(profiles.set("acme", {})).rejects.toMatchObject({ code: "invalid-argument" });
    expect(await profiles.list()).toEqual([]);
  });

  test("a layer has a history, a difference and a way back; a change to another version is refused", async ({
    fleet,
  }) => {
    const { profiles } = fleet.client();
    const first = await profiles.set("tenant.acme", { limits: { pids: 64 }, images: [] }, { by: "ann" });
    const wanted = { limits: { pids: 96, memoryBytes: "1g" }, network: "none" } as const;
    expect(await profiles.diff("tenant.acme", wanted)).toEqual([
      { path: "images", from: [], to: undefined },
      { path: "network", from: undefined, to: "none" },
      { path: "limits.memoryBytes", from: undefined, to: 1024 ** 3 },
      { path: "limits.pids", from: 64, to: 96 },
    ]);
    const stale = { ifVersion: 0 };
    await expect(profiles.set("tenant.acme", wanted, stale)).rejects.toMatchObject({
      code: "profile-changed",
      context: { version: first.version, expected: 0 },
    });
    await profiles.set("tenant.acme", wanted, { by: "bob", ifVersion: first.version });
    await profiles.set("tenant.acme", null, { by: "eve" });
    await profiles.rollback("tenant.acme", first.version, { by: "ann" });
    expect(await profiles.get("tenant.acme")).toMatchObject({ settings: first.settings, by: "ann" });
    const history = await profiles.history("tenant.acme");
    expect(history.map(({ by, settings }) => [by, settings?.limits?.pids])).toEqual([
      ["ann", 64],
      ["eve", undefined],
      ["bob", 96],
      ["ann", 64],
    ]);
    await expect(profiles.rollback("tenant.acme", 999)).rejects.toMatchObject({ code: "invalid-argument" });
  });
});
