import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fixture } from "./support/fixture.ts";
import { Init, isRoot } from "./support/init-process.ts";

/** Two sessions away from the leader, and orphaned: only a subreaper above still finds it. */
const escapee = "setsid sh -c 'setsid sleep 1000 & setsid sleep 1000 &' &";

const parentOf = (pid: number) =>
  Number(readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) . (\d+) .*$/s, "$1"));

describe("timeout", () => {
  test("a timeout ends a command with TERM, and reports the timeout", async () => {
    const init = await Init.start();
    const exit = await init.exec(["sleep", "1000"], { timeoutMs: 100, graceMs: 5_000 }).exit();
    expect(exit).toMatchObject({ kind: "signalled", value: 15, reason: 1, stuck: 0, background: 0 });
    expect(exit.wallMicros).toBeGreaterThanOrEqual(100_000);
    expect(exit.wallMicros).toBeLessThan(3_000_000);
  });

  test("a timeout lets a command that handles TERM finish within the grace", async () => {
    const init = await Init.start();
    const run = init.sh('trap "echo bye; exit 7" TERM; while :; do sleep 0.02; done', {
      timeoutMs: 1_000,
      graceMs: 5_000,
    });
    expect(await run.exit()).toMatchObject({ kind: "exited", value: 7, reason: 1 });
    expect(run.stdout).toBe("bye\n");
  });

  test("a timeout kills a tree that ignores TERM after the grace", async () => {
    const init = await Init.start();
    const run = init.sh('trap "" TERM; sleep 1000 & sleep 1000', { timeoutMs: 1_000, graceMs: 200 });
    const exit = await run.exit();
    expect(exit).toMatchObject({ kind: "signalled", value: 9, reason: 1, stuck: 0 });
    expect(exit.wallMicros).toBeGreaterThanOrEqual(1_200_000);
    expect(init.marked()).toEqual([]);
  });

  test("a timeout reaches descendants that called setsid and were orphaned twice", async () => {
    const init = await Init.start();
    const run = init.sh(`${escapee} exec sleep 1000`, { timeoutMs: 2_000, graceMs: 50 });
    await run.started();
    await init.until(() => init.marked().length === 3, "the whole tree");
    expect(await run.exit()).toMatchObject({ reason: 1, stuck: 0, background: 0 });
    expect(init.marked()).toEqual([]);
  });

  test("a timeout reaches stopped processes", async () => {
    const init = await Init.start();
    const run = init.sh("sh -c 'kill -STOP $$; sleep 1000' & kill -STOP $$", {
      timeoutMs: 200,
      graceMs: 100,
    });
    expect((await run.exit()).reason).toBe(1);
    expect(init.marked()).toEqual([]);
  });

  test("a timeout does not wait for credit", async () => {
    const init = await Init.start();
    const run = init.sh("yes", { credit: 10, timeoutMs: 1_000, graceMs: 0 });
    expect(await run.exit()).toMatchObject({ kind: "signalled", value: 9, reason: 1 });
    expect(run.outputBytes).toBe(10);
  });

  test("a timeout sends what was printed before it", async () => {
    const init = await Init.start();
    const run = init.sh("echo before; sleep 1000", { timeoutMs: 1_000 });
    expect((await run.exit()).reason).toBe(1);
    expect(run.stdout).toBe("before\n");
  });
});

describe("KILL", () => {
  test("KILL with grace 0 kills at once, with a grace sends TERM first", async () => {
    const init = await Init.start();
    const now = init.sh("sleep 1000");
    await now.started();
    now.kill(0);
    expect(await now.exit()).toMatchObject({ kind: "signalled", value: 9, reason: 2 });
    const later = init.sh('trap "exit 5" TERM; echo ready; while :; do sleep 0.02; done');
    await later.output("ready");
    later.kill(5_000);
    expect(await later.exit()).toMatchObject({ kind: "exited", value: 5, reason: 2 });
  });

  test("a second, sharper KILL does not wait for the first one's grace", async () => {
    const init = await Init.start();
    const run = init.sh('trap "" TERM; echo ready; while :; do sleep 0.02; done');
    await run.output("ready");
    run.kill(60_000);
    run.kill(0);
    expect(await run.exit()).toMatchObject({ kind: "signalled", value: 9, reason: 2 });
  });

  test("KILL touches no other command", async () => {
    const init = await Init.start();
    const other = init.exec(["cat"], { stdin: true });
    await other.started();
    const run = init.sh(`${escapee} exec sleep 1000`);
    await run.started();
    await init.until(() => init.marked().length === 4, "both trees");
    run.kill();
    await run.exit();
    expect(init.marked().length).toBe(1);
    other.stdin("alive");
    other.stdinEof();
    await other.exit();
    expect(other.stdout).toBe("alive");
  });
});

describe("processes that outrun a scan", () => {
  test.each([
    ["a chain of processes, each of which forks, leaves its session and dies", "1"],
    ["twenty such chains", "20"],
  ])("KILL ends %s", async (_, chains) => {
    const init = await Init.start({ binary: "release" });
    const run = init.exec([fixture("chain"), chains]);
    await run.started();
    await init.sh("sleep 0.2").exit();
    run.kill();
    expect(await run.exit()).toMatchObject({ reason: 2, stuck: 0 });
    expect(init.marked()).toEqual([]);
  });

  test.runIf(isRoot)(
    "a swarm that leaves init no processor is stopped, and its neighbours live",
    async () => {
      // A uid that nothing else uses: the limit counts all processes of a uid.
      const uid = 60_001 + (process.pid % 1_000);
      const init = await Init.start({
        asProcess1: true,
        binary: "release",
        uid,
        wrapper: ["prlimit", "--nproc=600"],
      });
      const bystander = init.exec(["cat"], { stdin: true });
      await bystander.started();
      const run = init.exec(["sh", "-c", '"$0" & exec sleep 1000', fixture("swarm")]);
      await run.started();
      await init.until(
        () => readdirSync("/proc").filter((name) => /^\d+$/.test(name)).length > 300,
        "the swarm",
      );
      run.kill();
      expect(await run.exit(30_000)).toMatchObject({ reason: 2, stuck: 0 });
      expect(init.marked().length).toBe(1);
      bystander.stdin("still here");
      bystander.stdinEof();
      expect((await bystander.exit()).reason).toBe(0);
      expect(bystander.stdout).toBe("still here");
    },
  );
});

describe("background children", () => {
  test("background children do not hold up the end of their command beyond the drain, and live on", async () => {
    const init = await Init.start();
    const run = init.sh("sleep 1000 & echo started", { drainMs: 100 });
    const exit = await run.exit();
    expect(exit).toMatchObject({ kind: "exited", value: 0, background: 1, held: 1, reason: 0 });
    expect(run.stdout).toBe("started\n");
    expect(init.marked().length).toBe(1);
  });

  test("background children are reported as at least one when there are too many processes to look at in time", async () => {
    const init = await Init.start();
    // Their numbers are lower than the sleeper's, so init meets them first. It looks for 20 ms.
    const crowd = init.exec([fixture("zombies"), "4000"]);
    await crowd.output("made");
    const exit = await init.sh("sleep 1000 >/dev/null 2>&1 &", { drainMs: 10 }).exit();
    expect(exit.background).toBeGreaterThanOrEqual(1);
    crowd.kill();
    await crowd.exit();
  });

  test("background children that let go of the pipes cost no drain at all", async () => {
    const init = await Init.start();
    const exit = await init.sh("sleep 1000 >/dev/null 2>&1 </dev/null &", { drainMs: 60_000 }).exit();
    expect(exit).toMatchObject({ value: 0, background: 1, held: 0 });
  });

  test("background children are still heard during the drain", async () => {
    const init = await Init.start();
    const run = init.sh("(sleep 0.1; echo late) & echo first", { drainMs: 30_000 });
    expect(await run.exit()).toMatchObject({ value: 0, held: 0 });
    expect(run.stdout).toBe("first\nlate\n");
  });

  test("background children that never stop talking do not make the drain longer", async () => {
    const init = await Init.start();
    const run = init.sh("yes & echo started", { drainMs: 100 });
    expect(await run.exit()).toMatchObject({ value: 0, background: 1, held: 1 });
  });

  test("background children that write after the end neither block nor get EPIPE", async () => {
    const init = await Init.start();
    const run = init.sh(
      "(sleep 0.3; head -c 1000000 /dev/zero && echo wrote > proof; echo $? > status) & :",
      { drainMs: 50 },
    );
    expect(await run.exit()).toMatchObject({ background: 2, held: 1 });
    await init.until(() => init.marked().length === 0, "the writer's end");
    const proof = init.sh("cat proof status");
    await proof.exit();
    expect(proof.stdout).toBe("wrote\n0\n");
  });

  test("background children are killed at the leader's end when that was asked for", async () => {
    const init = await Init.start();
    const run = init.sh(`${escapee} echo done`, { killBackground: true, drainMs: 60_000 });
    expect(await run.exit()).toMatchObject({
      kind: "exited",
      value: 0,
      reason: 0,
      background: 0,
      held: 0,
      stuck: 0,
    });
    expect(run.stdout).toBe("done\n");
    expect(init.marked()).toEqual([]);
  });

  test("background children are reaped when they end: no zombie stays", async () => {
    const init = await Init.start();
    await init.sh("for i in 1 2 3 4 5; do (sleep 0.1 &) ; done", { drainMs: 10 }).exit();
    await init.until(() => init.marked().length === 0, "their end");
    await init.until(() => zombiesBelow(init.pid) === 0, "no zombie");
    expect(zombiesBelow(init.pid)).toBe(0);
  });

  test("thousands of orphans that come as zombies at once are all reaped", async () => {
    const init = await Init.start();
    const flood = [
      "import os, time",
      "if os.fork(): os._exit(0)",
      "for i in range(2500):",
      "  if os.fork() == 0: os._exit(0)",
      "os.close(1); os.close(2); time.sleep(0.2)",
    ].join("\n");
    const run = init.exec(["python3", "-c", flood], { drainMs: 30_000 });
    expect((await run.exit()).value).toBe(0);
    await init.until(() => init.marked().length === 0 && zombiesBelow(init.pid) === 0, "no zombie");
    expect(zombiesBelow(init.pid)).toBe(0);
  });

  test("orphans are reaped while their command runs", async () => {
    const init = await Init.start();
    const run = init.sh("i=0; while [ $i -lt 20 ]; do (true &) ; i=$((i+1)); done; echo made; sleep 1000");
    await run.output("made");
    await init.until(() => zombiesBelow(init.pid) === 0, "no zombie");
    run.kill();
    expect((await run.exit()).reason).toBe(2);
  });
});

function zombiesBelow(root: number): number {
  const lines = execFileSync("ps", ["-eo", "pid=,ppid=,stat="], { encoding: "utf8" }).trim().split("\n");
  const rows = lines.map((line) => line.trim().split(/\s+/));
  const below = new Set([String(root)]);
  for (let grown = true; grown; ) {
    grown = false;
    for (const [pid = "", parent = ""] of rows) {
      if (below.has(parent) && !below.has(pid)) {
        below.add(pid);
        grown = true;
      }
    }
  }
  return rows.filter(([pid = "", , state = ""]) => below.has(pid) && state.startsWith("Z")).length;
}

describe("tenant that attacks the keeper", () => {
  test("a tenant that kills its keeper loses its command and everything below, and harms nothing else", async () => {
    const init = await Init.start();
    const other = init.exec(["cat"], { stdin: true });
    await other.started();
    const run = init.sh(`${escapee} exec sleep 1000`);
    const leader = await run.started();
    await init.until(() => init.marked().length === 4, "both trees");
    process.kill(parentOf(init.hostPid(leader)), "SIGKILL");
    expect(await run.exit()).toMatchObject({ kind: "signalled", value: 9, reason: 0, stuck: 0 });
    expect(init.marked().length).toBe(1);
    other.stdin("alive");
    other.stdinEof();
    await other.exit();
    expect(other.stdout).toBe("alive");
  });

  test("a tenant that attacks the keeper by killing it from within gains nothing", async () => {
    const init = await Init.start();
    expect(await init.sh("kill -9 $PPID; sleep 1000").exit()).toMatchObject({
      kind: "signalled",
      reason: 0,
      stuck: 0,
    });
    expect(init.marked()).toEqual([]);
    expect((await init.sh("exit 4").exit()).value).toBe(4);
  });

  test("a tenant that attacks the keeper by stopping it is still subject to its timeout", async () => {
    const init = await Init.start();
    const run = init.sh("kill -STOP $PPID; sleep 1000", { timeoutMs: 200, graceMs: 50 });
    expect(await run.exit()).toMatchObject({ reason: 1, stuck: 0 });
    expect(init.marked()).toEqual([]);
    expect((await init.sh("exit 4").exit()).value).toBe(4);
  });

  test("a tenant that attacks the keeper by killing the idle ones costs the next command nothing but their making", async () => {
    const init = await Init.start();
    await init.sh("true").exit();
    const children = () => readFileSync(`/proc/${init.pid}/task/${init.pid}/children`, "utf8").trim();
    for (const child of children().split(" ")) process.kill(Number(child), "SIGKILL");
    await init.until(() => children() === "", "their end");
    expect((await init.sh("exit 4").exit()).value).toBe(4);
  });

  test("a tenant that kills a keeper whose answer init has not read yet takes no slot of idle keepers", async () => {
    // Not process 1: `unshare` would stop itself along with an init that is stopped.
    const init = await Init.start({ binary: "release", asProcess1: false });
    writeFileSync(join(init.workspace, "large"), "");
    truncateSync(join(init.workspace, "large"), 400 * 1024 * 1024);
    const children = () =>
      readFileSync(`/proc/${init.pid}/task/${init.pid}/children`, "utf8")
        .split(" ")
        .filter((pid) => pid !== "");
    const stat = (pid: string) =>
      readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ");
    const cpuTicks = (pid: string) => Number(stat(pid)[11]);
    const hashing = init.file([1, 3], [2, "large"], [4, 1]);
    await init.until(() => children().some((pid) => cpuTicks(pid) > 2), "a keeper that hashes");
    const keeper = children().find((pid) => cpuTicks(pid) > 2) ?? "";
    process.kill(init.pid, "SIGSTOP");
    await init.until(() => stat(keeper)[0] === "S", "the keeper's answer");
    process.kill(Number(keeper), "SIGKILL");
    await init.until(() => stat(keeper)[0] === "Z", "the keeper's end");
    process.kill(init.pid, "SIGCONT");
    expect((await hashing.done()).number(1)).toBe(400 * 1024 * 1024);
    for (const child of children()) process.kill(Number(child), "SIGKILL");
    await init.until(() => children().length === 0, "the end of the idle ones");
    await init.hello();
    await init.until(() => children().length === 2, "two idle keepers", 10_000);
  });

  test("a tenant that attacks the keeper by killing one that kept background children loses those", async () => {
    const init = await Init.start();
    const run = init.sh("sleep 1000 & :", { drainMs: 10 });
    await run.exit();
    const [child = 0] = init.marked();
    process.kill(parentOf(child), "SIGKILL");
    await init.until(() => init.marked().length === 0, "the stray's end");
    expect((await init.sh("exit 4").exit()).value).toBe(4);
  });
});

describe("SHUTDOWN and signals", () => {
  test("SHUTDOWN ends every command, background too, reports it, and exits 0", async () => {
    const init = await Init.start();
    await init.sh("sleep 1000 & :", { drainMs: 10 }).exit();
    const run = init.sh('trap "exit 3" TERM; echo ready; while :; do sleep 0.02; done');
    await run.output("ready");
    init.send(0x0b, 0, Buffer.from([1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0x13, 0x88]));
    expect(await init.exited).toBe(0);
    expect(await run.exit()).toMatchObject({ kind: "exited", value: 3, reason: 2 });
    expect(init.marked()).toEqual([]);
  });

  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "%s from outside ends every command and exits 0, as SHUTDOWN does",
    async (signal) => {
      const init = await Init.start();
      const run = init.sh("sleep 1000");
      await run.started();
      process.kill(init.pid, signal);
      expect(await init.exited).toBe(0);
      expect(await run.exit()).toMatchObject({ kind: "signalled", value: 15, reason: 2 });
    },
  );

  test.runIf(isRoot)(
    "as process 1 init obeys signals from outside only, even if a tenant forges their sender",
    async () => {
      const init = await Init.start({ asProcess1: true });
      const forge = [
        "import ctypes,os,signal,struct",
        "libc=ctypes.CDLL(None,use_errno=True)",
        "for s in (1,2,3,10,12,15): os.kill(1,s)",
        // rt_sigqueueinfo with SI_QUEUE and a pid of 0, and an attempt at SI_USER.
        "for code in (-1,0): libc.syscall(129,1,15,struct.pack('iiiIII104x',15,0,code,0,0,0))",
      ].join("\n");
      expect((await init.exec(["python3", "-c", forge]).exit()).value).toBe(0);
      expect((await init.sh("kill -9 1; kill -STOP 1; exit 4").exit()).value).toBe(4);
      expect(await init.ping("unmoved")).toBe("unmoved");
      const run = init.sh("sleep 1000");
      await run.started();
      process.kill(init.pid, "SIGTERM");
      expect(await init.exited).toBe(0);
      expect((await run.exit()).reason).toBe(2);
    },
  );
});
