import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { lstat, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { initBinaryPath } from "@berth/init";
import Docker from "dockerode";
import { describe, expect } from "vitest";
import { busybox, type TestFleet, type TestWorker, test } from "../support/fleet.ts";

const docker = new Docker(
  process.env.DOCKER_HOST?.startsWith("unix://") ? { socketPath: process.env.DOCKER_HOST.slice(7) } : {},
);
const one = { ...busybox, BERTH_WARM_COUNT: "1", BERTH_WARM_MOST: "1" };
const shortHash = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 32);

/** Those that wait for a sandbox. */
async function waiting(fleet: TestFleet): Promise<string[]> {
  return (await fleet.containers()).filter(({ key }) => key === "").map(({ id }) => id);
}

async function untilWarm(fleet: TestFleet, count = 1): Promise<void> {
  const warm = async () => (await fleet.client().workers()).reduce((sum, worker) => sum + worker.warm, 0);
  await expect.poll(warm, { timeout: 30_000 }).toBe(count);
}

async function kill(worker: TestWorker): Promise<void> {
  worker.signal("SIGKILL");
  await worker.ended();
}

describe("worker with a warm pool", () => {
  test("a worker with a warm pool gives its containers to new and returning tenants, and leaves none behind", async ({
    fleet,
  }) => {
    const worker = await fleet.worker("worker-1", { ...one, BERTH_PARKED_COUNT: "0", BERTH_IDLE_MS: "200" });
    await untilWarm(fleet);
    expect(worker.log).toContain('"event":"warm.ready"');
    const acme = fleet.client().tenant("acme");
    expect((await acme.exec("echo kept > file; id -un")).outcome).toMatchObject({ kind: "exited", code: 0 });
    expect(worker.log).toMatch(/"sandbox.opened","key":"acme","how":"warm"/);
    // It idled, and its container, which nothing else may have, is gone.
    await expect
      .poll(async () => (await fleet.containers()).filter(({ key }) => key === "acme"), { timeout: 20_000 })
      .toEqual([]);
    // It comes back, until it does so while a container waits.
    await expect
      .poll(
        async () => {
          expect((await acme.exec("cat file")).stdout).toBe("kept\n");
          return worker.log.match(/"key":"acme","how":"warm"/g)?.length;
        },
        { timeout: 60_000, interval: 1_000 },
      )
      .toBe(2);
    expect(await fleet.client().workers()).toMatchObject([{ id: "worker-1", warmWhy: "" }]);
    worker.signal("SIGTERM");
    expect(await worker.ended()).toBe(0);
    expect(await fleet.containers()).toEqual([]);
  });

  test("a worker with a warm pool keeps as many as were asked for lately, up to its most", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", { ...busybox, BERTH_WARM_COUNT: "1", BERTH_WARM_MOST: "3" });
    await untilWarm(fleet);
    const berth = fleet.client();
    await Promise.all(["a", "b", "c", "d"].map((tenant) => berth.tenant(tenant).exec("true")));
    await untilWarm(fleet, 3);
  });
});

describe("what a worker leaves that dies", () => {
  test("waiting warm containers of a dead worker go with its next life, or with another worker", async ({
    fleet,
  }) => {
    const first = await fleet.worker("worker-1", one);
    await untilWarm(fleet);
    const [left = ""] = await waiting(fleet);
    await kill(first);
    const again = await fleet.worker("worker-1", one);
    await expect.poll(async () => (await waiting(fleet)).includes(left), { timeout: 20_000 }).toBe(false);
    await expect.poll(() => waiting(fleet), { timeout: 20_000 }).toHaveLength(1);
    const [other = ""] = await waiting(fleet);
    await kill(again);
    // init ends by itself when its worker has been silent for a minute.
    await docker.getContainer(other).kill();
    await fleet.worker("worker-2", one);
    await expect.poll(async () => (await waiting(fleet)).includes(other), { timeout: 40_000 }).toBe(false);
  });

  test("a warm container whose worker died before mounting is replaced, and the job runs elsewhere", async ({
    fleet,
  }) => {
    const found = await assigned(fleet, { mounted: false });
    await fleet.worker("worker-1", { ...one, BERTH_WARM_COUNT: "0" });
    expect((await fleet.client().tenant("acme").exec("cat whose")).stdout).toBe("acme's\n");
    await expectOnly(fleet, found);
  });

  test("a warm container whose worker died after mounting serves that sandbox only, or is replaced", async ({
    fleet,
  }) => {
    const found = await assigned(fleet, { mounted: true });
    await fleet.worker("worker-1", { ...one, BERTH_WARM_COUNT: "0" });
    const berth = fleet.client();
    expect((await berth.tenant("acme").exec("cat whose; echo more >> whose")).stdout).toBe("acme's\n");
    expect((await berth.tenant("other").exec("ls")).stdout).toBe("");
    expect((await berth.tenant("acme").exec("cat whose")).stdout).toBe("acme's\nmore\n");
    const owners = await Promise.all(
      ["acme", "acme/whose"].map(async (name) => (await lstat(join(fleet.workspaces, name))).uid),
    );
    expect(new Set(owners).size).toBe(1);
    expect((await fleet.containers()).filter(({ key }) => key === "acme")).toHaveLength(1);
    expect(found.id).toBeTruthy();
  });

  test("another worker of the host replaces the assigned container of a dead worker", async ({ fleet }) => {
    const found = await assigned(fleet, { mounted: true });
    await fleet.worker("worker-2", { ...one, BERTH_WARM_COUNT: "0" });
    expect((await fleet.client().tenant("acme").exec("cat whose")).stdout).toBe("acme's\n");
    await expectOnly(fleet, found);
  });
});

interface Assigned {
  readonly id: string;
  readonly record: string;
}

/** Neither the container nor the note of it is left, and the sandbox has one container. */
async function expectOnly(fleet: TestFleet, { id, record }: Assigned): Promise<void> {
  const containers = await fleet.containers();
  expect(containers.map((one) => one.id)).not.toContain(id);
  expect(containers).toHaveLength(1);
  await expect(stat(record)).rejects.toThrow("ENOENT");
}

/** As worker-1 leaves it that dies while it assigns a container to `acme`, which has a file. No worker is alive then. */
async function assigned(fleet: TestFleet, { mounted }: { readonly mounted: boolean }): Promise<Assigned> {
  const first = await fleet.worker("worker-1", { ...one, BERTH_IDLE_MS: "200" });
  await untilWarm(fleet);
  expect((await fleet.client().tenant("acme").exec('echo "acme\'s" > whose')).outcome.kind).toBe("exited");
  await expect.poll(() => fleet.parked(), { timeout: 20_000 }).toHaveLength(1);
  await untilWarm(fleet);
  const [id = ""] = await waiting(fleet);
  await kill(first);
  const scope = join(
    fleet.workspaces,
    ".parked",
    (await readdir(join(fleet.workspaces, ".parked")))[0] ?? "",
  );
  const parked = JSON.parse(await readFile(join(scope, `${shortHash("acme")}.parked`), "utf8"));
  await docker.getContainer(parked.containerId).remove({ force: true });
  const record = join(scope, `${shortHash("acme")}.held.worker-1`);
  await writeFile(record, JSON.stringify({ ...parked, containerId: id }));
  execFileSync("rm", [join(scope, `${shortHash("acme")}.parked`)]);
  if (mounted) await mount(fleet, id);
  return { id, record };
}

async function mount(fleet: TestFleet, id: string): Promise<void> {
  const { State, Config } = await docker.getContainer(id).inspect();
  const { uid } = await lstat(join(fleet.workspaces, "acme"));
  const { ino } = await stat(`/proc/${State.Pid}/ns/mnt`);
  const link = `.link/${shortHash("acme")}`;
  await mkdir(join(fleet.workspaces, link), { recursive: true });
  const inside = Config.User.split(":")[0];
  const requests = [
    `1 open 0 ${State.Pid} ${ino}`,
    `2 mount 0 ${uid} ${inside} rw acme /workspace ro ${link} /.berth/link`,
  ];
  const answers = execFileSync(initBinaryPath, ["--mounter", fleet.workspaces], {
    input: `${requests.join("\n")}\n`,
    encoding: "utf8",
  });
  expect(answers).toBe("1 0 -\n2 0 -\n");
}
