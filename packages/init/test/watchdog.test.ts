import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Init, isRoot } from "./support/init-process.ts";
import { records, Type } from "./support/wire.ts";

const places = [
  ["as an ordinary process", false],
  ["as process 1", true],
] as const;

describe.each(places.filter(([, asProcess1]) => isRoot || !asProcess1))(
  "the watchdog %s",
  (_, asProcess1) => {
    test("the watchdog kills every process after a lease of silence, and reports it once to the next HELLO", async () => {
      const init = new Init({ asProcess1 });
      await init.hello(60_000);
      await init.sh("setsid sleep 1000 & :", { drainMs: 10 }).exit();
      const run = init.sh("sleep 1000");
      await run.started();
      const write = init.file([1, 2], [2, "half"], [8, 10]);
      write.stdin("abc");
      await init.hello(300);
      await init.until(() => run.last !== undefined && write.last !== undefined, "both ends");
      expect(await run.exit()).toMatchObject({ reason: 3, kind: "signalled", value: 9 });
      // What is killed goes a moment later, and another process than the command is not waited for.
      await expect.poll(() => init.marked()).toEqual([]);
      expect((await init.hello(60_000)).number(2)).toBe(1);
      expect((await init.hello(60_000)).number(2)).toBe(0);
      const after = init.sh("ls -A");
      expect((await after.exit()).value).toBe(0);
      expect(after.stdout).toBe("");
    });

    test("the watchdog kills nothing while the worker sends frames, even if only PINGs", async () => {
      const init = new Init({ asProcess1 });
      // Twenty pings in a lease: a busy machine does not keep them all for that long.
      await init.hello(1_000);
      const run = init.sh("sleep 2.5");
      while (run.last === undefined) {
        await init.ping();
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      expect(await run.exit()).toMatchObject({ kind: "exited", value: 0, reason: 0 });
      expect((await init.hello()).number(2)).toBe(0);
    });
  },
);

describe("watchdog", () => {
  test("the watchdog is not fed by frames of a lower epoch", async () => {
    const init = new Init();
    await init.hello(500, 5n);
    const run = init.sh("sleep 1000");
    const speak = setInterval(() => init.send(Type.PING, 0, Buffer.from("old"), 4n), 50);
    const exit = await run.exit();
    clearInterval(speak);
    expect(exit.reason).toBe(3);
  });

  test("only HELLO and PING feed the watchdog, since only they prove that the worker still has its lease", async () => {
    const init = new Init();
    await init.hello(500);
    const run = init.sh("sleep 1000");
    const other = setInterval(() => init.send(Type.CREDIT, run.number, records([1, 10])), 50);
    const exit = await run.exit();
    clearInterval(other);
    expect(exit.reason).toBe(3);
  });

  test("the watchdog waits for as long as the last PING asked, be that less than the lease or more", async () => {
    const init = new Init();
    await init.hello(60_000);
    const run = init.sh("sleep 1000");
    await run.started();
    const saidMs = Date.now();
    init.send(Type.PING, 0, records([1, 300]));
    expect((await run.exit()).reason).toBe(3);
    expect(Date.now() - saidMs).toBeGreaterThanOrEqual(290);

    await init.hello(300);
    init.send(Type.PING, 0, records([1, 60_000]));
    expect(await init.sh("sleep 1").exit()).toMatchObject({ kind: "exited", value: 0 });
  });

  test("after the watchdog acted init starts nothing until the worker renews its lease", async () => {
    const init = new Init();
    await init.hello(100);
    expect((await init.sh("sleep 1000").exit()).reason).toBe(3);
    expect(await init.sh("touch late").fail()).toMatchObject({ code: "lease-over" });
    const write = init.file([1, 2], [2, "late"], [8, 0]);
    expect(await write.fail()).toMatchObject({ code: "lease-over" });
    init.send(Type.PING, 0, records([1, 60_000]));
    const after = init.sh("ls -A");
    expect((await after.exit()).value).toBe(0);
    expect(after.stdout).toBe("");
  });

  test("the watchdog kills when the stream is gone, waits for another, and exits 0 after ten more leases", async () => {
    const init = new Init();
    await init.hello(100);
    init.sh("sleep 1000");
    const begun = Date.now();
    init.process.stdin.end();
    expect(await init.exited).toBe(0);
    expect(Date.now() - begun).toBeGreaterThan(1_000);
    expect(Date.now() - begun).toBeLessThan(8_000);
    expect(init.marked()).toEqual([]);
  });

  test("an ended stream is no busy loop", async () => {
    const init = new Init({ binary: "release" });
    await init.hello(60_000);
    const pid = init.pid;
    const ticks = () => Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[13]);
    const run = init.sh("sleep 1");
    await run.started();
    init.process.stdin.end();
    const before = ticks();
    await run.exit();
    expect(ticks() - before).toBeLessThan(20); // of a hundred that a second has
    process.kill(pid, "SIGTERM");
    expect(await init.exited).toBe(0);
  });

  test("a lease of 0 turns the watchdog off", async () => {
    const init = new Init();
    await init.hello(0);
    const run = init.sh("sleep 0.3");
    expect((await run.exit()).reason).toBe(0);
    init.send(Type.KILL, run.number, records([1, 0]));
    expect((await init.hello()).number(2)).toBe(0);
  });
});
