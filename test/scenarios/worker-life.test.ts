import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { redisKeys, sandboxKey } from "@berth/protocol";
import { describe, expect, onTestFinished } from "vitest";
import { busybox, TestWorker, test } from "../support/fleet.ts";

describe("worker that starts again", () => {
  test("a worker that starts again adopts the containers it left on purpose, with everything in them", async ({
    fleet,
  }) => {
    const keep = { ...busybox, BERTH_ON_STOP: "keep" };
    const first = await fleet.worker("worker-1", keep);
    const acme = fleet.client().tenant("acme");
    await acme.exec("echo warm > /tmp/mark");
    const [before] = await fleet.containers();
    first.signal("SIGTERM");
    expect(await first.ended()).toBe(0);
    expect((await fleet.containers()).map(({ id }) => id)).toEqual([before?.id]);
    const second = await fleet.worker("worker-1", busybox);
    expect(second.log).toContain('"adopted":1');
    expect((await acme.exec("cat /tmp/mark")).stdout).toBe("warm\n");
    expect((await fleet.containers()).map(({ id }) => id)).toEqual([before?.id]);
  });

  test("a worker that starts again after being killed adopts what it held, and ends what had begun as lost", async ({
    fleet,
  }) => {
    const first = await fleet.worker("worker-1", busybox);
    const acme = fleet.client().tenant("acme");
    await acme.exec("echo warm > /tmp/mark");
    const job = await acme.exec("echo begun; sleep 60").enqueued();
    for await (const event of job.events()) if (event.type === "stdout") break;
    first.signal("SIGKILL");
    await first.ended();
    const [before] = await fleet.containers();
    await fleet.worker("worker-1", busybox);
    expect((await job.result).outcome).toMatchObject({ kind: "lost" });
    expect((await acme.exec("cat /tmp/mark; pgrep sleep")).stdout).toBe("warm\n");
    expect((await fleet.containers()).map(({ id }) => id)).toEqual([before?.id]);
  });

  test("a worker that starts again has its sandboxes again although Redis has forgotten how far they were", async ({
    fleet,
  }) => {
    const first = await fleet.worker("worker-1", busybox);
    const acme = fleet.client().tenant("acme");
    await acme.exec("echo warm > /tmp/mark");
    first.signal("SIGKILL");
    await first.ended();
    const redis = fleet.redis.connect();
    const epoch = Number(await redis.hget(redisKeys.lease(sandboxKey.parse("acme")), "epoch"));
    for (const key of [redisKeys.lease(sandboxKey.parse("acme")), redisKeys.worker("worker-1")])
      await redis.del(key);
    await fleet.worker("worker-1", busybox);
    expect((await acme.exec("cat /tmp/mark")).stdout).toBe("warm\n");
    const again = Number(await redis.hget(redisKeys.lease(sandboxKey.parse("acme")), "epoch"));
    expect(again).toBeGreaterThan(epoch);
  });

  test("a worker that starts again removes what has become another worker's", async ({ fleet }) => {
    const first = await fleet.worker("worker-1", busybox);
    const acme = fleet.client().tenant("acme");
    await acme.exec("true");
    first.signal("SIGKILL");
    await first.ended();
    await fleet.worker("worker-2", busybox);
    expect((await acme.exec("echo moved")).stdout).toBe("moved\n");
    const again = await fleet.worker("worker-1", busybox);
    expect(again.log).not.toContain('"adopted":1');
    expect(await fleet.containers()).toMatchObject([{ worker: "worker-2" }]);
  });
});

describe("worker without an engine", () => {
  const nowhere = { ...busybox, DOCKER_HOST: "unix:///nowhere/docker.sock" };

  test("a worker without an engine stays up and lets jobs wait for one that has", async ({ fleet }) => {
    const lame = await fleet.worker("worker-1", nowhere);
    const berth = fleet.client();
    const job = await berth.tenant("acme").exec("echo served").enqueued();
    await expect.poll(() => lame.log).toContain("engine.lost");
    await expect
      .poll(async () => (await berth.workers())[0]?.health)
      .toContain("no container engine answers");
    expect((await berth.why(job.id)).reasons.join()).toContain("no container engine answers");
    expect(await job.status()).toBe("waiting");
    await fleet.worker("worker-2", busybox);
    expect((await job.result).value.stdout).toBe("served\n");
    // Once per outage, not once per look.
    expect(lame.log.split("engine.lost")).toHaveLength(2);
  });

  test("a worker without an engine refuses jobs with the reason when it is set to", async ({ fleet }) => {
    await fleet.worker("worker-1", { ...nowhere, BERTH_ON_NO_SANDBOX: "refuse" });
    const { outcome } = await fleet.client().tenant("acme").exec("true");
    // Wedged once enough calls have failed, those of the worker's start among them.
    expect(outcome).toMatchObject({
      kind: "refused",
      code: expect.stringMatching(/^engine-(unreachable|wedged)$/),
    });
  });

  test("a worker without an engine refuses at once what no waiting mends, and goes on with other tenants", async ({
    fleet,
  }) => {
    const file = join(fleet.workspaces, "..", "worker.json");
    await writeFile(file, JSON.stringify({ profiles: { broken: { image: "no-such-image:ever" } } }));
    await fleet.worker("worker-1", { ...busybox, BERTH_CONFIG: file });
    const berth = fleet.client();
    await berth.tenant("acme").grant({ profiles: ["broken"] });
    await berth.tenant("initech").grant({ profiles: ["never-heard-of"] });
    const bad = berth.tenant("acme").exec("true", { profile: "broken" });
    const unknown = berth.tenant("initech").exec("true", { profile: "never-heard-of" });
    expect((await berth.tenant("globex").exec("echo fine")).stdout).toBe("fine\n");
    expect((await bad).outcome).toMatchObject({ kind: "refused", code: "image-missing" });
    const refusal = (profile: string) => ({
      kind: "refused",
      code: "not-granted",
      message: `the profile ${profile} is not available to the tenant initech`,
    });
    expect((await unknown).outcome).toEqual(refusal("never-heard-of"));
    // A profile that exists and was not granted is answered in the same words.
    const ungranted = berth.tenant("initech").exec("true", { profile: "broken" });
    expect((await ungranted).outcome).toEqual(refusal("broken"));
  });
});

describe("worker whose host cannot start sandboxes", () => {
  const onB = { ...busybox, BERTH_HOST: "host-b" };

  test("a worker whose host cannot start sandboxes leaves new tenants to a worker that can", {
    timeout: 60_000,
  }, async ({ fleet }) => {
    const onA = { BERTH_HOST: "host-a", BERTH_IMAGE: "no-such-image:ever" };
    const lame = await fleet.worker("worker-a", onA);
    const berth = fleet.client();
    await fleet.worker("worker-b", onB);
    const tenants = Array.from({ length: 8 }, (_, index) => `tenant-${index}`);
    const results = await Promise.all(
      tenants.map((tenant) =>
        berth
          .tenant(tenant)
          .exec("echo served")
          .then(({ stdout }) => stdout),
      ),
    );
    expect(results).toEqual(tenants.map(() => "served\n"));
    expect((await berth.sandboxes()).map(({ home }) => home)).toEqual(tenants.map(() => "host-b"));
    expect(lame.log).not.toContain("engine.lost");
  });

  test("a worker whose host cannot start sandboxes refuses the job when every worker that could take it has failed", async ({
    fleet,
  }) => {
    const missing = { BERTH_IMAGE: "no-such-image:ever" };
    const workers = [
      await fleet.worker("worker-a", { ...missing, BERTH_HOST: "host-a" }),
      await fleet.worker("worker-b", { ...missing, BERTH_HOST: "host-b" }),
    ];
    const berth = fleet.client();
    const { outcome } = await berth.tenant("acme").exec("true");
    expect(outcome).toMatchObject({ kind: "refused", code: "image-missing" });
    expect((await berth.sandboxes())[0]?.home, "it has no files anywhere").toBeUndefined();
    expect(
      workers.filter(({ log }) => log.includes("tenancy.trouble")),
      "one handed it back",
    ).toHaveLength(1);
  });

  test("a worker whose host cannot start sandboxes reports failing starts once, and no lost engine", async ({
    fleet,
  }) => {
    const worker = await fleet.worker("worker-1", { ...busybox, BERTH_INIT: "/nowhere/init" });
    const berth = fleet.client();
    for (const tenant of ["acme", "globex", "initech"])
      expect((await berth.tenant(tenant).exec("true")).outcome).toMatchObject({ code: "init-missing" });
    await expect.poll(() => worker.log).toContain("starts.failing");
    await expect.poll(async () => (await berth.workers())[0]?.health).toContain("init-missing");
    expect(worker.log).not.toContain("engine.lost");
    expect(worker.log.split("starts.failing")).toHaveLength(2);
  });
});

describe("sandbox that never starts", () => {
  test("a sandbox that never starts holds up no other tenant, and its worker does not report a lost engine", async ({
    fleet,
  }) => {
    const file = join(fleet.workspaces, "..", "worker.json");
    // More than the host has: the engine refuses this container, and starts others.
    const huge = { image: busybox.BERTH_IMAGE, limits: { cpus: 1_024 } };
    await writeFile(file, JSON.stringify({ profiles: { huge } }));
    const worker = await fleet.worker("worker-1", { ...busybox, BERTH_CONFIG: file });
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    await acme.grant({ profiles: ["huge"] });
    const stuck = await acme.exec("true", { profile: "huge" }).enqueued();
    await expect.poll(() => worker.log).toContain("tenancy.trouble");
    expect((await berth.tenant("globex").exec("echo fine")).stdout).toBe("fine\n");
    await expect.poll(async () => (await berth.why(stuck.id)).reasons.join()).toContain("did not start");
    expect(await berth.ping("worker-1")).toMatchObject({ health: "ok" });
    expect(worker.log).not.toMatch(/engine.lost|starts.failing/);
    await stuck.cancel();
  });
});

describe("worker's workspaces", () => {
  test("a worker's workspaces that cannot be written end the worker with the setting, the path and the cause, and exit code 78", async () => {
    const nowhere = "unix:///nowhere/redis.sock";
    const worker = new TestWorker("worker-1", { BERTH_WORKSPACES: "/proc/x", REDIS_URL: nowhere });
    onTestFinished(() => worker.signal("SIGKILL"));
    expect(await worker.ended()).toBe(78);
    expect(worker.log).toMatch(/BERTH_WORKSPACES.*\/proc\/x cannot be used: ENOENT/);
  });

  test("a worker's workspaces that can no longer be written degrade the worker, and jobs wait until they can", async ({
    fleet,
  }) => {
    const worker = await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    // Its own look at the workspaces, when it starts, would find the file: then the first job waits as well.
    await expect.poll(() => worker.log).toContain("start.checked");
    await rm(fleet.workspaces, { recursive: true });
    // A file in its place: not even root can make a directory in it.
    await writeFile(fleet.workspaces, "");
    const first = await berth.tenant("acme").exec("true");
    expect(first.outcome).toMatchObject({ kind: "refused", code: "workspace-unusable" });
    await expect.poll(() => worker.log).toContain("engine.lost");
    const job = await berth.tenant("globex").exec("echo served").enqueued();
    await expect.poll(async () => (await berth.workers())[0]?.health).toContain("cannot be used");
    expect(await job.status()).toBe("waiting");
    await rm(fleet.workspaces);
    expect((await job.result).value.stdout).toBe("served\n");
  });
});

describe("worker with a mistyped profile", () => {
  test("a profile that no sandbox can start with holds back its own tenants, however many they are, and no other tenant's new sandboxes", async ({
    fleet,
  }) => {
    const berth = fleet.client();
    await berth.profiles.set("profile.data", {
      mountable: { data: { source: "/nowhere/data", target: "/mnt/data", access: "ro" } },
      mounts: ["data"],
    });
    await berth.profiles.set("profile.net", { network: "no-such-network" });
    const worker = await fleet.worker("worker-1", { ...busybox });
    for (const [profile, code] of [
      ["data", "mount-refused"],
      ["net", "profile-unmet"],
    ] as const)
      for (const tenant of ["acme", "globex", "initech", "hooli"].map((name) => `${name}-${profile}`)) {
        await berth.tenant(tenant).grant({ profiles: [profile] });
        const { outcome } = await berth.tenant(tenant).exec("true", { profile });
        expect(outcome).toMatchObject({ kind: "refused", code });
      }
    expect((await berth.tenant("umbrella").exec("echo served")).stdout).toBe("served\n");
    expect(worker.log).not.toContain("starts.failing");
  });
});

describe("worker's configuration", () => {
  test("a worker's configuration is blamed for a password that Redis refuses, with exit code 78, and unknown variables are named", async ({
    fleet,
  }) => {
    const admin = fleet.redis.connect();
    await admin.config("SET", "requirepass", "secret-word");
    const worker = fleet.launch("worker-1", { BERTH_MAX_SANDBOXS: "4", BERTH_GATEWAY_PORT: "80" });
    expect(await worker.ended()).toBe(78);
    expect(worker.log).toMatch(/berth-worker: Redis refuses the user name or password.*REDIS_URL/);
    expect(worker.log).not.toContain("eviction");
    expect(worker.log).toContain("BERTH_MAX_SANDBOXS is not a setting of Berth");
    expect(worker.log).toContain("did you mean BERTH_MAX_SANDBOXES?");
    expect(worker.log, "another program's variable").not.toContain("BERTH_GATEWAY_PORT");
    await admin.config("SET", "requirepass", "");
  });

  test("a worker's configuration comes from a file too, and the environment wins", async ({ fleet }) => {
    const file = join(fleet.workspaces, "..", "worker.json");
    const small = { image: busybox.BERTH_IMAGE, limits: { memoryBytes: 64 * 1024 ** 2 } };
    await writeFile(file, JSON.stringify({ BERTH_MAX_SANDBOXES: 5, BERTH_PARALLEL: 2, profiles: { small } }));
    await fleet.worker("worker-1", { ...busybox, BERTH_CONFIG: file, BERTH_PARALLEL: "3" });
    const berth = fleet.client();
    // Its first heartbeat comes a moment after its start.
    await expect.poll(async () => (await berth.workers())[0]?.slots).toBe(5);
    const limit =
      "cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max";
    const acme = berth.tenant("acme");
    await acme.grant({ profiles: ["small"] });
    const sizes = [await acme.exec(limit), await acme.exec(limit, { profile: "small" })];
    expect(sizes.map(({ stdout }) => Number(stdout) / 1024 ** 2)).toEqual([512, 64]);
  });

  test("a worker's configuration that cannot be used is reported with every problem at once, and exit code 78", async () => {
    const worker = new TestWorker("worker-1", {
      BERTH_MAX_SANDBOXES: "none",
      BERTH_POOLS: "Not A Name",
      BERTH_CONFIG: "/nowhere/worker.json",
      REDIS_URL: "foo",
    });
    expect(await worker.ended()).toBe(78);
    expect(worker.log).toMatch(/REDIS_URL: it does not begin with redis:\/\/.*unix:\/\/\/PATH/);
    expect(worker.log).toMatch(/BERTH_MAX_SANDBOXES/);
    expect(worker.log).toMatch(/BERTH_POOLS/);
    expect(worker.log).toMatch(/\/nowhere\/worker\.json/);
  });
});
