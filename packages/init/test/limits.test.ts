import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Init, isRoot } from "./support/init-process.ts";
import { Type } from "./support/wire.ts";

describe("sixty-four commands", () => {
  test("sixty-four commands may run at a time, with eight file operations; one more is busy, and fits when another is over", async () => {
    const init = await Init.start({ binary: "release" });
    const runs = Array.from({ length: 64 }, () => init.exec(["cat"], { stdin: true }));
    await Promise.all(runs.map((run) => run.started()));
    expect(await init.sh("true").failCode()).toBe("busy");
    // Some channels are kept for files, or a workspace full of commands could not be measured.
    const writes = Array.from({ length: 8 }, (_, n) => init.file([1, 2], [2, `f${n}`], [8, 0]));
    expect(await init.file([1, 3], [2, ""]).failCode()).toBe("busy");
    const stats = init.channel();
    init.send(Type.STATS, stats.number);
    expect((await stats.done()).number(21)).toBe(72);
    for (const write of writes) write.stdinEof();
    for (const write of writes) await write.done();
    for (const run of runs) {
      run.stdin(`I am ${run.number}`);
      run.stdinEof();
    }
    const exits = await Promise.all(runs.map((run) => run.exit(30_000)));
    expect(exits.every((exit) => exit.value === 0)).toBe(true);
    expect(runs.map((run) => run.stdout)).toEqual(runs.map((run) => `I am ${run.number}`));
    expect((await init.sh("exit 2").exit()).value).toBe(2);
  });

  test("sixty-four commands whose output is not read leave room for PING, KILL and EXIT", async () => {
    const init = await Init.start({ binary: "release" });
    const runs = Array.from({ length: 64 }, () => init.sh("yes", { credit: 100 }));
    await Promise.all(runs.map((run) => run.started()));
    expect(await init.ping("through")).toBe("through");
    for (const run of runs) run.kill();
    const exits = await Promise.all(runs.map((run) => run.exit(30_000)));
    expect(exits.every((exit) => exit.reason === 2 && exit.stuck === 0)).toBe(true);
    expect(init.marked()).toEqual([]);
  });
});

describe.runIf(isRoot)("sandbox without a process to spare", () => {
  const hogging = [
    "import os, time",
    "try:",
    "  while True:",
    "    if os.fork() == 0: time.sleep(1000)",
    "except OSError:",
    "  print('full', flush=True)",
    "  time.sleep(1000)",
  ].join("\n");

  test("a sandbox without a process to spare answers fork-failed, keeps speaking, and works again when there is room", async () => {
    // A uid that nothing else uses: the limit counts all processes of a uid.
    const uid = 40_000 + (process.pid % 20_000);
    const init = await Init.start({ binary: "release", uid, wrapper: ["prlimit", "--nproc=24"] });
    const hog = init.exec(["python3", "-c", hogging]);
    await hog.output("full");
    for (let i = 0; i < 5; i++) expect(await init.sh("true").failCode()).toBe("fork-failed");
    expect(await init.ping("alive")).toBe("alive");
    hog.kill();
    expect(await hog.exit()).toMatchObject({ reason: 2, stuck: 0 });
    expect((await init.sh("exit 6").exit()).value).toBe(6);
    expect(init.marked()).toEqual([]);
  });
});

describe("STATS", () => {
  test("STATS reports the cgroup's counters that this kernel has, and the open channels", async () => {
    const init = await Init.start();
    const version = (await init.hello()).number(6);
    const run = init.sh("sleep 1000");
    await run.started();
    const stats = init.channel();
    init.send(Type.STATS, stats.number);
    const done = await stats.done();
    expect(done.number(21)).toBe(1);
    if (version !== 0) expect((done.number(16) ?? 0) + (done.number(19) ?? 0)).toBeGreaterThan(0);
    run.kill();
    await run.exit();
  });
});

describe("init's memory", () => {
  test("init's memory does not grow with what passes through it", async () => {
    const init = await Init.start({ binary: "release" });
    const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${init.pid}/status`, "utf8"))?.[1]);
    const pass = async () => {
      const run = init.sh("head -c 30000000 /dev/zero");
      await run.exit(60_000);
      run.frames.length = 0;
    };
    await pass();
    const before = rss();
    for (let i = 0; i < 3; i++) await pass();
    for (let i = 0; i < 200; i++) await init.sh("true").exit();
    expect(rss() - before).toBeLessThan(1024);
    expect(rss()).toBeLessThan(4096);
  });
});
