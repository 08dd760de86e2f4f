import { randomBytes } from "node:crypto";
import { chownSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as base, describe, expect } from "vitest";
import { Init, isRoot } from "./support/init-process.ts";
import { Mounter } from "./support/mounter.ts";

const [inside, onDisk] = [54_321, 54_322];
const [first, second] = [randomBytes(32), randomBytes(32)];
const errno = { EPERM: 1, ESRCH: 3, EBADF: 9, ENODEV: 19, EINVAL: 22, EBUSY: 16 };

/** Workspaces of two sandboxes, beneath one root. */
const test = base.extend<{ root: string }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  root: async ({}, use) => {
    const root = mkdtempSync(join(tmpdir(), "init-mounter-"));
    for (const name of ["acme", "other"]) {
      mkdirSync(join(root, name), { mode: 0o700 });
      writeFileSync(join(root, name, "whose"), name);
      for (const path of [join(root, name, "whose"), join(root, name)]) chownSync(path, onDisk, onDisk);
    }
    await use(root);
    rmSync(root, { recursive: true, force: true });
  },
});

/** In a mount namespace of its own, with an empty file system in the workspace's place. */
function pooled(): Init {
  const workspace = mkdtempSync(join(tmpdir(), "init-pool-"));
  const wrapper = ["sh", "-c", `mount -t tmpfs -o ro,size=4k none ${workspace} && exec "$@"`, "sh"];
  return new Init({ asProcess1: true, uid: inside, pool: true, workspace, wrapper });
}

/** Its mount namespace is in slot 0 then. */
async function open(init: Init, mounter: Mounter): Promise<void> {
  const ack = await init.hello(60_000, 1n);
  expect(await mounter.ask(`open 0 ${init.pid} ${ack.number(10)}`)).toBe("0 -");
}

const mountOf = (init: Init, name: string) => `mount 0 ${onDisk} ${inside} rw ${name} ${init.workspace}`;

describe("init that knows its sandbox", () => {
  test("an init that knows its sandbox serves no other, and ends what runs when it is asked to", async () => {
    const init = new Init();
    expect((await init.hello(60_000, 1n, first)).number(11)).toBeUndefined();
    const run = init.sh("sleep 1000");
    await run.started();
    expect((await init.hello(60_000, 2n, second)).number(11)).toBe(errno.EPERM);
    await init.until(() => init.marked().length === 0, "the command's end");
    expect((await init.sh("true").fail()).code).toBe("lease-over");
    // Nor the first again: who it belongs to is in doubt.
    expect((await init.hello(60_000, 3n, first)).number(11)).toBe(errno.EPERM);
    expect((await init.file([1, 4], [2, ""]).fail()).code).toBe("lease-over");
  });

  test("an init that knows its sandbox serves its next holder, but no holder without a key", async () => {
    const init = new Init();
    await init.hello(60_000, 1n, first);
    expect((await init.hello(60_000, 2n, first)).number(11)).toBeUndefined();
    expect((await init.sh("true").exit()).value).toBe(0);
    expect((await init.hello(60_000, 3n)).number(11)).toBe(errno.EPERM);
    expect((await init.sh("true").fail()).code).toBe("lease-over");
  });
});

describe.runIf(isRoot)("init of the pool", () => {
  test("an init of the pool gets its workspace once it runs, with the files of another uid as its own", async ({
    root,
  }) => {
    await using mounter = new Mounter(root);
    const init = pooled();
    await open(init, mounter);
    expect(await mounter.ask(mountOf(init, "acme"))).toBe("0 -");
    expect((await init.hello(60_000, 2n, first)).number(11)).toBeUndefined();
    const run = init.sh("stat -c %u:%g whose .; cat whose; echo; echo more >> whose; echo new > new; pwd");
    expect((await run.exit()).value).toBe(0);
    expect(run.stdout).toBe(`${inside}:${inside}\n${inside}:${inside}\nacme\n${init.workspace}\n`);
    expect(statSync(join(root, "acme/new"))).toMatchObject({ uid: onDisk, gid: onDisk });
    await init.file([1, 7], [2, "made"]).end();
    expect(statSync(join(root, "acme/made"))).toMatchObject({ uid: onDisk, gid: onDisk });
  });

  test("an init of the pool starts nothing while it waits, and nothing when its sandbox has no workspace there", async ({
    root,
  }) => {
    await using mounter = new Mounter(root);
    const init = pooled();
    await open(init, mounter);
    expect((await init.sh("touch ran").fail()).code).toBe("lease-over");
    expect((await init.file([1, 3], [2, ""]).fail()).code).toBe("lease-over");
    expect((await init.hello(60_000, 2n, first)).number(11)).toBe(errno.ENODEV);
    // What comes later does not make up for it.
    expect(await mounter.ask(mountOf(init, "acme"))).toBe("0 -");
    expect((await init.hello(60_000, 3n, first)).number(11)).toBe(errno.EPERM);
    expect((await init.sh("true").fail()).code).toBe("lease-over");
  });

  test("an init of the pool refuses a second sandbox after its first", async ({ root }) => {
    await using mounter = new Mounter(root);
    const init = pooled();
    await open(init, mounter);
    await mounter.ask(mountOf(init, "acme"));
    await init.hello(60_000, 2n, first);
    expect((await init.hello(60_000, 3n, second)).number(11)).toBe(errno.EPERM);
    expect((await init.sh("cat whose").fail()).code).toBe("lease-over");
  });

  test("an init of the pool exits when its worker sends nothing for longer than its lease", async () => {
    const init = pooled();
    await init.hello(200, 1n);
    expect(await init.exited).toBe(0);
  });
});

describe.runIf(isRoot)("init --mounter", () => {
  test("init --mounter can try what it will do, and leaves nothing of it", async ({ root }) => {
    await using mounter = new Mounter(root);
    expect(await mounter.ask("try")).toBe("0 -");
    expect(await mounter.ask("try")).toBe("0 -");
  });

  test("init --mounter mounts nothing from outside of its root", async ({ root }) => {
    await using mounter = new Mounter(root);
    symlinkSync("/etc", join(root, "link"));
    mkdirSync(join(root, "acme/deep"));
    symlinkSync("../../other", join(root, "acme/deep/link"));
    for (const name of ["..", "/etc", "link", "acme/../../etc", "acme/deep/link", "acme/whose", "missing"]) {
      const init = pooled();
      await open(init, mounter);
      expect(await mounter.ask(mountOf(init, name)), name).toMatch(/^[1-9]\d* open$/);
      // Done or not, the slot was good for one.
      expect(await mounter.ask(mountOf(init, "acme")), name).toBe(`${errno.EBADF} request`);
      await init.stop();
    }
  });

  test("init --mounter enters no namespace but the one that init named, and none twice", async ({ root }) => {
    await using mounter = new Mounter(root);
    const init = pooled();
    const ack = await init.hello(60_000, 1n);
    const namespace = ack.number(10);
    expect(namespace).toBeGreaterThan(0);
    // A process of the host, which has the number that a container's had.
    expect(await mounter.ask(`open 0 ${process.pid} ${namespace}`)).toBe(`${errno.ESRCH} namespace`);
    expect(await mounter.ask(`open 0 ${init.pid} ${namespace}`)).toBe("0 -");
    expect(await mounter.ask(`open 0 ${init.pid} ${namespace}`)).toBe(`${errno.EBUSY} open`);
    expect(await mounter.ask("close 0")).toBe("0 -");
    expect(await mounter.ask(mountOf(init, "acme"))).toBe(`${errno.EBADF} request`);
  });

  test.for([
    "",
    "open",
    "open 256 1 1",
    "open -1 1 1",
    "open 0 ../1 1",
    "open 0 99999999999 1",
    "mount 0 1 2",
    "mount 0 1 2 rw acme",
    "mount 0 1 4294967295 rw acme /x",
    "mount 0 1 2 rw acme relative",
    "mount 0 x 2 rw acme /x",
    `mount 0 1 2${" rw acme /x".repeat(5)}`,
    "close",
    "close 0 0",
    "try again",
    "exec 0 sh",
  ])("init refuses the set-up request %j", async (request, { root }) => {
    await using mounter = new Mounter(root);
    expect(await mounter.ask(request)).toBe(`${errno.EINVAL} request`);
  });

  test("init --mounter ends at a line that is too long", async ({ root }) => {
    const mounter = new Mounter(root);
    mounter.write(`7 open ${"0".repeat(10_000)}\n`);
    expect(await mounter.exited).toBe(1);
  });
});
