import { lstat, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { redisKeys, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { busybox, type TestFleet, test } from "../support/fleet.ts";

async function trees(fleet: TestFleet): Promise<string[]> {
  return readdir(join(fleet.workspaces, ".snapshots")).catch(() => []);
}

describe("hostile tenant", () => {
  test("a hostile tenant has no more snapshots, and no more bytes of them, than its ceilings", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const evil = berth.tenant("evil");
    await berth.profiles.set("tenant.evil", { ceilings: { snapshots: 2, snapshotBytes: 200_000 } });
    await evil.write("a", "x".repeat(50_000));
    await evil.snapshot("one");
    await evil.write("b", "x".repeat(120_000));
    const large = await evil.snapshot("two");
    expect(large.outcome).toMatchObject({ kind: "refused", code: "tenant-full" });
    await evil.remove("b");
    expect((await evil.snapshot("two")).outcome).toEqual({ kind: "done" });
    const third = await evil.snapshot("three");
    expect(third.outcome).toMatchObject({
      code: "tenant-full",
      message: expect.stringMatching(/2 snapshots|snapshots/),
    });
    const kept = (await trees(fleet)).map((name) => name.split(".").slice(0, 2).join("."));
    expect(kept.sort()).toEqual(["evil.one", "evil.two"]);
  });

  test("a hostile tenant gets nothing of the host or of another tenant by links in a snapshot", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const [evil, acme] = [berth.tenant("evil"), berth.tenant("acme")];
    await acme.write("precious", "not for evil eyes");
    const target = join(fleet.workspaces, "acme", "precious");
    const outside = join(fleet.workspaces, "..", "outside");
    await writeFile(outside, "outside");
    await evil.exec(`
      ln -s / root; ln -s ${target} file; ln -s ${outside} out; ln -s ../../acme up; ln -s . loop; ln -s /dev/sda dev
      mkfifo pipe; mkdir -p d/../e; mkdir s; cp /bin/busybox s/busybox; chmod 6755 s/busybox; ln s/busybox hard; mkdir sub; ln -s ../../../../etc sub/etc`);
    const made = await evil.snapshot("bad");
    expect(made.outcome).toEqual({ kind: "done" });
    // Every link is a link, and a fifo stops nothing.
    expect(made.size).toBeLessThan(10_000_000);
    await evil.restore("bad");
    const [fork] = evil.fork("bad");
    for (const sandbox of [evil, fork]) {
      const seen = await sandbox?.exec(
        "for link in root file out up loop dev sub/etc; do readlink $link; done; cat file out up/precious; id -u; s/busybox id -u",
      );
      expect(seen?.stdout.split("\n").slice(0, 7)).toEqual([
        "/",
        target,
        outside,
        "../../acme",
        ".",
        "/dev/sda",
        "../../../../etc",
      ]);
      expect(seen?.stdout).not.toContain("not for evil eyes");
      const ids = seen?.stdout.trim().split("\n").slice(-2);
      expect(ids?.[0], "setuid gives nothing").toBe(ids?.[1]);
      expect(Number(ids?.[0])).toBeGreaterThan(0);
    }
    await evil.removeSnapshot("bad");
    await expect.poll(() => trees(fleet), { timeout: 20_000 }).toEqual([]);
    await evil.destroy();
    await fork?.destroy();
    expect((await acme.read("precious")).content).toBe("not for evil eyes");
    expect((await lstat(outside)).isFile()).toBe(true);
  });

  test("a hostile tenant's forks at once have its closed directories and its holes, and no privilege that it tried to keep in a file", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1");
    const evil = fleet.client().tenant("evil");
    const tried = await evil.exec(`python3 - <<'END'
import os, struct
open("tool", "w").write("#!/bin/sh\\nid -u\\n")
os.chmod("tool", 0o6777)
os.setxattr("tool", "user.note", b"x" * 200)
acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in
    [(1, 7, 0xffffffff), (2, 7, 0), (4, 0, 0xffffffff), (16, 7, 0xffffffff), (32, 0, 0xffffffff)])
os.setxattr("tool", "system.posix_acl_access", acl)
for name in ("security.capability", "trusted.note"):
    try: os.setxattr("tool", name, struct.pack("<IIIII", 0x2000001, 0xffffffff, 0, 0xffffffff, 0)); print("set", name)
    except OSError as error: print(error.strerror)
with open("hole", "wb") as file: file.truncate(900 << 20); file.seek(500 << 20); file.write(b"x")
for number in range(200):
    os.mkdir(f"closed{number}"); open(f"closed{number}/file", "w").write("x")
    os.chmod(f"closed{number}/file", 0); os.chmod(f"closed{number}", 0)
os.mkdir(b"bad\\xff"); open(b"bad\\xff/\\n", "w")
END`);
    expect(tried).toMatchObject({ stdout: "Operation not permitted\n".repeat(2), stderr: "" });
    expect((await evil.snapshot("odd")).outcome).toEqual({ kind: "done" });
    const look = `stat -c '%a %s' tool hole; test $(stat -c %b hole) -lt 1000 && echo holes
      find . -maxdepth 1 -name 'closed*' -perm 000 | wc -l; ls bad* | wc -l
      python3 -c 'import os; print([name for name in os.listxattr("tool") if not name.startswith(("user.", "system."))])'
      test "$(./tool)" = "$(id -u)" && echo unprivileged`;
    const forks = [1, 2, 3, 4].map(() => evil.exec(look, { forkOf: "odd" }));
    const seen = (await Promise.all(forks)).map(({ stdout }) => stdout);
    const expected = /^6\d\d\d 16\n644 943718400\nholes\n200\n2\n\[\]\nunprivileged\n$/;
    expect(seen).toEqual(forks.map(() => expect.stringMatching(expected)));
  });

  test("a process that a hostile tenant leaves running writes into neither the snapshot nor the restored files", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const evil = fleet.client().tenant("evil");
    const writer = "exec 9>>/workspace/log; while :; do echo x >&9; echo y >> /workspace/log; done";
    await evil.exec(`setsid sh -c '${writer}' > /dev/null 2>&1 & while [ ! -s log ]; do :; done`);
    expect((await evil.snapshot("live")).outcome).toEqual({ kind: "done" });
    const size = async () => (await evil.exec("wc -c < log", { forkOf: "live" })).stdout;
    const before = await size();
    await evil.exec(`setsid sh -c '${writer}' > /dev/null 2>&1 & rm log; while [ ! -s log ]; do :; done`);
    expect((await evil.restore("live")).outcome).toEqual({ kind: "done" });
    expect((await evil.exec("wc -c < log; pgrep -f writer | wc -l")).stdout).toBe(`${before}0\n`);
    expect(await size()).toBe(before);
  });

  test("files without permissions, nested deeply or with odd names do not keep a snapshot from being made, restored and removed", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const evil = fleet.client().tenant("evil");
    await evil.exec(`
      mkdir -p a/b/c; echo x > a/b/c/d; chmod 000 a/b/c/d; chmod 000 a/b; chmod 500 a
      i=0; while [ $i -lt 300 ]; do mkdir deep; cd deep; i=$((i+1)); done; echo bottom > file
      cd /workspace; printf x > "$(printf 'bad\\377\\nname')"`);
    expect((await evil.snapshot("odd")).outcome).toEqual({ kind: "done" });
    await evil.restore("odd");
    expect((await evil.exec("stat -c %a a a/b; find deep -name file | wc -l; ls | wc -l")).stdout).toBe(
      "500\n0\n1\n3\n",
    );
    await evil.removeSnapshot("odd");
    await expect.poll(() => trees(fleet), { timeout: 20_000 }).toEqual([]);
  });

  test("a hostile tenant with paths longer than any name gets no snapshot, and leaves nothing", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const evil = fleet.client().tenant("evil");
    const name = "n".repeat(200);
    await evil.exec(`i=0; while [ $i -lt 30 ]; do mkdir ${name}; cd ${name}; i=$((i+1)); done; echo x > x`);
    expect((await evil.snapshot("long")).outcome).toMatchObject({
      kind: "refused",
      code: "snapshot-refused",
    });
    expect(await trees(fleet)).toEqual([]);
    expect((await evil.exec("ls | wc -l")).stdout).toBe("1\n");
    expect((await evil.destroy()).outcome).toEqual({ kind: "done" });
  });

  test.for(["..", "../acme", "a/b", "a.b", ".hidden", "", "A", "x".repeat(64), "a\0b"])(
    "a tenant cannot name a snapshot %j",
    async (name, { fleet }) => {
      const evil = fleet.client().tenant("evil");
      await expect(evil.snapshot(name).enqueued()).rejects.toMatchObject({ code: "invalid-job" });
      await expect(evil.restore(name).enqueued()).rejects.toMatchObject({ code: "invalid-job" });
      await expect(evil.exec("true", { forkOf: name }).enqueued()).rejects.toMatchObject({
        code: "invalid-job",
      });
      expect(() => evil.fork(name)).toThrow();
    },
  );

  test("a hostile tenant cannot fork, restore or remove another tenant's snapshot, nor make one of the sandbox that all share", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const [evil, acme] = [berth.tenant("evil"), berth.tenant("acme")];
    await acme.write("a", "acme's");
    await acme.snapshot("base");
    expect((await evil.restore("base")).outcome).toMatchObject({ code: "snapshot-unknown" });
    expect((await evil.exec("cat a", { forkOf: "base" })).outcome).toMatchObject({
      code: "snapshot-unknown",
    });
    expect(await evil.removeSnapshot("base")).toBe(false);
    const shared = { scope: "shared" } as const;
    expect((await evil.snapshot("all", shared)).outcome).toMatchObject({
      kind: "refused",
      code: "snapshot-refused",
    });
    expect((await acme.exec("true", { ...shared, forkOf: "base" })).outcome).toMatchObject({
      code: "snapshot-refused",
    });
    expect((await acme.snapshots()).map(({ name }) => name)).toEqual(["base"]);
  });

  test("a hostile tenant that leaves something in the way of a snapshot's name is not followed", async ({
    fleet,
  }) => {
    const elsewhere = join(fleet.workspaces, "..", "elsewhere");
    await mkdir(elsewhere, { recursive: true });
    await writeFile(join(elsewhere, "kept"), "kept");
    await mkdir(join(fleet.workspaces, ".snapshots"), { recursive: true });
    // As if the host had it: a link where a snapshot's files would be.
    await symlink(elsewhere, join(fleet.workspaces, ".snapshots", "acme.base.0123456789abcdef"));
    const redis = fleet.redis.connect();
    await redis.sadd(redisKeys.droppedSnapshots("acme"), "acme.base.0123456789abcdef");
    await fleet.worker("worker-1", busybox);
    await fleet.client().tenant("acme").exec("true");
    await expect.poll(async () => readdir(elsewhere)).toEqual(["kept"]);
  });
});

test("a worker that dies while it makes a snapshot leaves no visible snapshot, and the job runs again", async ({
  fleet,
}) => {
  const first = await fleet.worker("worker-1", busybox);
  const acme = fleet.client().tenant("acme");
  await acme.exec("i=0; while [ $i -lt 3000 ]; do echo $i > f$i; i=$((i+1)); done");
  const job = await acme.snapshot("base").enqueued();
  await expect
    .poll(async () => (await trees(fleet)).some((name) => name.startsWith(".aside-")), {
      interval: 5,
      timeout: 20_000,
    })
    .toBe(true);
  first.signal("SIGKILL");
  expect(await acme.snapshots()).toEqual([]);
  await fleet.worker("worker-2", busybox);
  const { outcome, value } = await job.result;
  expect(outcome).toEqual({ kind: "done" });
  expect(value.count).toBe(3000);
  expect(await acme.snapshots()).toMatchObject([{ name: "base", count: 3000 }]);
  expect((await trees(fleet)).filter((name) => !name.startsWith("."))).toHaveLength(1);
  expect(await fleet.redis.connect().hlen(redisKeys.snapshots(String(sandboxKey.parse("acme"))))).toBe(1);
});
