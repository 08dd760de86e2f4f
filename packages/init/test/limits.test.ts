import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Init, isRoot } from "./support/init-process.ts";
import { Records, Type } from "./support/wire.ts";

describe("sixty-four channels", () => {
  test("may be open at a time; one more is busy, and fits when another is over", async () => {
    const init = await Init.start({ binary: "release" });
    const runs = Array.from({ length: 64 }, () => init.exec(["cat"], { stdin: true }));
    await Promise.all(runs.map((run) => run.started()));
    expect(await init.sh("true").failCode()).toBe("busy");
    expect(await init.file([1, 3], [2, ""]).failCode()).toBe("busy");
    const stats = init.channel();
    init.send(Type.STATS, stats.number);
    expect((await stats.done()).number(21)).toBe(64);
    for (const run of runs) {
      run.stdin(`I am ${run.number}`);
      run.stdinEof();
    }
    const exits = await Promise.all(runs.map((run) => run.exit(30_000)));
    expect(exits.every((exit) => exit.value === 0)).toBe(true);
    expect(runs.map((run) => run.stdout)).toEqual(runs.map((run) => `I am ${run.number}`));
    expect((await init.sh("exit 2").exit()).value).toBe(2);
  });

  test("full of commands nobody reads leave room for PING, KILL and EXIT", async () => {
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

describe.runIf(isRoot)("a sandbox without a process to spare", () => {
  test("answers fork-failed, keeps speaking, and works again when there is room", async () => {
    // A uid nobody else uses: the limit counts all processes of a uid.
    const uid = 40_000 + (process.pid % 20_000);
    const init = await Init.start({ binary: "release", uid, wrapper: ["prlimit", "--nproc=24"] });
    const hog = init.sh("i=0; while [ $i -lt 40 ]; do sleep 1000 & i=$((i+1)); done; wait");
    await init.until(() => init.marked().length >= 15, "the limit");
    const refused = init.sh("true");
    const writing = [0, 1, 2, 3, 4, 5].map(() => init.sh("sleep 1000"));
    const codes = new Set<number | undefined>();
    for (const run of [refused, ...writing]) {
      await init.until(() => run.frames.length > 0, "an answer");
      codes.add(run.frames[0]?.type);
      if (run.last?.type === Type.FAIL) expect(new Records(run.last.payload).text(1)).toBe("fork-failed");
    }
    expect(codes.has(Type.FAIL)).toBe(true);
    expect(await init.ping("alive")).toBe("alive");
    hog.kill();
    expect((await hog.exit()).stuck).toBe(0);
    for (const run of writing) run.kill();
    await Promise.all(writing.map((run) => run.end()));
    expect((await init.sh("exit 6").exit()).value).toBe(6);
  });
});

describe("STATS", () => {
  test("tells the cgroup's counters that this kernel has, and the open channels", async () => {
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
  test("does not grow with what passes through it", async () => {
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
