import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Init } from "./support/init-process.ts";
import { Type } from "./support/wire.ts";

describe("command", () => {
  test("a command gets exactly the environment it was sent", async () => {
    const init = await Init.start();
    const run = init.exec(["/usr/bin/env"], { env: ["A=1", "B=two words", "EMPTY="] });
    await run.exit();
    expect(run.stdout.trim().split("\n")).toEqual(["A=1", "B=two words", "EMPTY=", init.marker]);
  });

  test("a command gets its arguments byte for byte, without a shell in between", async () => {
    const init = await Init.start();
    const run = init.exec(["printf", "%s|", "$HOME", "a b", "", "'\"\\\n"]);
    await run.exit();
    expect(run.stdout).toBe("$HOME|a b||'\"\\\n|");
  });

  test("a command is looked up in the PATH it was sent, and in none of init's own", async () => {
    const init = await Init.start();
    mkdirSync(join(init.workspace, "bin"));
    writeFileSync(join(init.workspace, "bin/tool"), "#!/bin/sh\necho tool", { mode: 0o755 });
    const found = init.exec(["tool"], { env: [`PATH=/nowhere:${init.workspace}/bin`] });
    await found.exit();
    expect(found.stdout).toBe("tool\n");
    expect(await init.exec(["ls"], { env: ["PATH=/nowhere"] }).failCode()).toBe("command-not-found");
    const defaulted = init.exec(["true"], { env: [] });
    expect((await defaulted.exit()).value).toBe(0);
  });

  test("a command starts in the workspace, or in a directory beneath it", async () => {
    const init = await Init.start();
    mkdirSync(join(init.workspace, "a/b"), { recursive: true });
    symlinkSync("a/b", join(init.workspace, "inside"));
    const cwds = ["", "a/b", "./a//b/", `${init.workspace}/a`, "inside"];
    const printed = [];
    for (const cwd of cwds) {
      const run = init.exec(["/bin/pwd", "-P"], { cwd });
      await run.exit();
      printed.push(run.stdout.trim().slice(init.workspace.length));
    }
    expect(printed).toEqual(["", "/a/b", "/a/b", "/a", "/a/b"]);
  });

  test("a command does not start in a directory that is missing, no directory, outside or unspeakable", async () => {
    const init = await Init.start();
    writeFileSync(join(init.workspace, "file"), "");
    symlinkSync("/etc", join(init.workspace, "out"));
    const codes = [];
    for (const cwd of ["missing", "file", "out", "/etc", "a/../b", "a\nb"]) {
      codes.push(await init.exec(["pwd"], { cwd }).failCode());
    }
    expect(codes).toEqual([
      "not-found",
      "not-a-directory",
      "outside-workspace",
      "outside-workspace",
      "invalid-path",
      "invalid-path",
    ]);
  });

  test("a command keeps its two outputs apart, each in order", async () => {
    const init = await Init.start();
    const run = init.sh("for i in 1 2 3; do echo o$i; echo e$i >&2; done");
    await run.exit();
    expect(run.stdout).toBe("o1\no2\no3\n");
    expect(run.stderr).toBe("e1\ne2\ne3\n");
  });

  test("a command sends STARTED before any output and EXIT after all of it", async () => {
    const init = await Init.start();
    for (let i = 0; i < 30; i++) {
      const run = init.sh("echo out; echo err >&2");
      await run.exit();
      expect(run.frames[0]?.type).toBe(Type.STARTED);
      expect(run.frames.at(-1)?.type).toBe(Type.EXIT);
      expect(run.stdout + run.stderr).toBe("out\nerr\n");
    }
  });

  test("a command reports its exit code", async () => {
    const init = await Init.start();
    for (const code of [0, 1, 42, 255]) {
      expect(await init.sh(`exit ${code}`).exit()).toMatchObject({
        kind: "exited",
        value: code,
        reason: 0,
        stuck: 0,
      });
    }
  });

  test("a command reports the signal that ended it", async () => {
    const init = await Init.start();
    for (const [name, number] of [
      ["TERM", 15],
      ["KILL", 9],
      ["SEGV", 11],
      ["PIPE", 13],
    ] as const) {
      expect(await init.sh(`kill -${name} $$`).exit()).toMatchObject({
        kind: "signalled",
        value: number,
        reason: 0,
      });
    }
  });

  test("a command reports time and memory it took", async () => {
    const init = await Init.start();
    const exit = await init.sh("i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; sleep 0.05").exit();
    expect(exit.wallMicros).toBeGreaterThan(50_000);
    expect(exit.cpuMicros).toBeGreaterThan(1_000);
    expect(exit.cpuMicros).toBeLessThan(exit.wallMicros + 1_000_000);
    expect(exit.maxRssKib).toBeGreaterThan(100);
  });

  test("a command reports the time of its orphans and the memory of its largest process", async () => {
    const init = await Init.start();
    /** Ends once the orphan is gone, which its keeper reaps. */
    const orphaned = (script: string) =>
      init
        .sh(
          `(sh -c '${script}' & echo $! > orphan); while kill -0 $(cat orphan) 2>/dev/null; do sleep 0.05; done`,
        )
        .exit();
    const spun = await orphaned("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done");
    expect(spun.cpuMicros).toBeGreaterThan(60_000);
    const large = await orphaned("a=$(head -c 30000000 /dev/zero | tr \\\\0 x)");
    expect(large.maxRssKib).toBeGreaterThan(20_000);
    const killed = await init
      .sh("(sh -c 'while :; do :; done' &); exec sleep 60", { timeoutMs: 1_000 })
      .exit();
    expect(killed.reason).toBe(1);
    expect(killed.cpuMicros).toBeGreaterThan(100_000);
  });

  test("a command starts with standard signals: nothing blocked, nothing ignored", async () => {
    const init = await Init.start();
    const run = init.exec(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]);
    await run.exit();
    expect(run.stdout.replaceAll(/\s+/g, " ").trim()).toBe(
      "SigBlk: 0000000000000000 SigIgn: 0000000000000000",
    );
  });

  test("a command leads a session of its own and holds three descriptors and no more", async () => {
    const init = await Init.start();
    const run = init.exec(["ls", "-1", "/proc/self/fd"]);
    const pid = await run.started();
    await run.exit();
    expect(run.stdout.trim().split("\n")).toEqual(["0", "1", "2", "3"]); // 3 is ls reading the directory
    const session = init.exec(["sh", "-c", "cut -d' ' -f5,6 /proc/$$/stat; echo $$"]);
    const leader = await session.started();
    await session.exit();
    expect(session.stdout).toBe(`${leader} ${leader}\n${leader}\n`);
    expect(pid).toBeGreaterThan(0);
  });

  test("a command reads /dev/null when no stdin follows", async () => {
    const init = await Init.start();
    const run = init.sh("cat; readlink /proc/self/fd/0");
    await run.exit();
    expect(run.stdout).toBe("/dev/null\n");
  });

  test("a command reads the stdin it is sent, then its end", async () => {
    const init = await Init.start();
    const run = init.exec(["cat"], { stdin: true });
    run.stdin("one ");
    run.stdin("two");
    await run.output("one two");
    run.stdinEof();
    expect((await run.exit()).value).toBe(0);
    expect(run.stdout).toBe("one two");
  });

  test("a command that is missing, not executable or has too many arguments reports which it is", async () => {
    const init = await Init.start();
    writeFileSync(join(init.workspace, "plain"), "echo no");
    writeFileSync(join(init.workspace, "garbage"), Buffer.alloc(64, 1), { mode: 0o755 });
    mkdirSync(join(init.workspace, "dir"));
    expect(await init.exec(["no-such-program"]).fail()).toMatchObject({
      code: "command-not-found",
      errno: 2,
    });
    expect(await init.exec(["./missing"]).failCode()).toBe("command-not-found");
    expect(await init.exec([""]).failCode()).toBe("command-not-found");
    expect(await init.exec(["./plain"]).fail()).toMatchObject({ code: "not-executable", errno: 13 });
    expect(await init.exec(["./garbage"]).failCode()).toBe("not-executable");
    expect(await init.exec(["./dir"]).failCode()).toBe("not-executable");
    const long = init.channel();
    const payload = init.execPayload(["true", "x".repeat(200_000)]);
    for (let at = 0; at < payload.length; at += 60_000) {
      const last = at + 60_000 >= payload.length;
      init.send(last ? Type.EXEC : Type.PART, long.number, payload.subarray(at, at + 60_000));
    }
    expect(await long.failCode()).toBe("too-long");
    expect((await init.exec(["true"]).exit()).value).toBe(0);
  });

  test("a command on a channel already in use is refused, and the one that runs goes on", async () => {
    const init = await Init.start();
    const run = init.exec(["cat"], { stdin: true });
    await run.started();
    init.send(Type.EXEC, run.number, init.execPayload(["true"]));
    await init.until(() => run.last !== undefined, "the refusal");
    expect(await run.failCode()).toBe("bad-request");
    const goesOn = init.channel(run.number);
    goesOn.stdin("here");
    goesOn.stdinEof();
    await goesOn.exit();
    expect(goesOn.stdout).toBe("here");
  });

  test("hundreds of commands in a row, eight at a time, all answer and leave no descriptor behind", async () => {
    const init = await Init.start();
    for (let i = 0; i < 40; i++) {
      const runs = Array.from({ length: 8 }, (_, n) => init.sh(`echo ${n}; exit ${n}`));
      const exits = await Promise.all(runs.map((run) => run.exit()));
      expect(exits.map((exit) => exit.value)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      expect(runs.map((run) => run.stdout)).toEqual(runs.map((_, n) => `${n}\n`));
    }
    expect(readdirSync(`/proc/${init.pid}/fd`).length).toBeLessThan(24);
  });
});
