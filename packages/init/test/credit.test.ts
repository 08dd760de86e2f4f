import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Init } from "./support/init-process.ts";
import { Type } from "./support/wire.ts";

/** Long enough for init to do what it should not: another command has come and gone. */
const meanwhile = (init: Init) => init.sh("sleep 0.1").exit();

function writersAsleep(init: Init): number {
  const heads = init.marked().filter((pid) => readFileSync(`/proc/${pid}/comm`, "utf8") === "head\n");
  return heads.filter((pid) => readFileSync(`/proc/${pid}/wchan`, "utf8").includes("pipe_w")).length;
}

/** Of a command's stdin, where the kernel allows it. */
const largePipeBytes = 262_144;

describe("credit", () => {
  test("init sends no byte more than it was given, and the rest when it is given more", async () => {
    const init = await Init.start();
    const run = init.sh("head -c 300000 /dev/zero", { credit: 1000 });
    await init.until(() => run.outputBytes === 1000, "the first thousand");
    await meanwhile(init);
    expect(run.outputBytes).toBe(1000);
    run.credit(2000);
    await init.until(() => run.outputBytes === 3000, "three thousand");
    run.credit(2 ** 40);
    expect((await run.exit()).value).toBe(0);
    expect(run.outputBytes).toBe(300_000);
  });

  test("stdout and stderr share a channel's credit", async () => {
    const init = await Init.start();
    const run = init.sh("head -c 600 /dev/zero; head -c 600 /dev/zero >&2; sleep 100", { credit: 1000 });
    await init.until(() => run.outputBytes === 1000, "a thousand in all");
    await meanwhile(init);
    expect(run.outputBytes).toBe(1000);
  });

  test("a command whose output is not read does not hold up another", async () => {
    const init = await Init.start();
    const stuck = init.sh("yes", { credit: 0 });
    await stuck.started();
    for (let i = 0; i < 10; i++) {
      const run = init.sh("head -c 100000 /dev/zero");
      expect((await run.exit()).value).toBe(0);
      expect(run.outputBytes).toBe(100_000);
    }
    expect(stuck.outputBytes).toBe(0);
  });

  test("a silent command without credit ends all the same", async () => {
    const init = await Init.start();
    expect((await init.sh("exit 3", { credit: 0 }).exit()).value).toBe(3);
    const exact = init.sh("printf 12345", { credit: 5 });
    expect((await exact.exit()).value).toBe(0);
    expect(exact.stdout).toBe("12345");
  });

  test("output of a command that ended waits for credit, however long, and then comes whole", async () => {
    const init = await Init.start();
    const run = init.sh("printf 'the last words'", { credit: 4, drainMs: 10 });
    await run.output("the ");
    await meanwhile(init);
    expect(run.last).toBeUndefined();
    run.credit(100);
    expect(await run.exit()).toMatchObject({ kind: "exited", value: 0, held: 0 });
    expect(run.stdout).toBe("the last words");
  });

  test("a worker that stops reading stops the commands' output, and nothing is lost", async () => {
    const init = await Init.start();
    init.pauseReading();
    const runs = [0, 1, 2].map(() => init.sh("head -c 3000000 /dev/zero"));
    // Each has then filled its pipe and sleeps in write: no more is read.
    await init.until(() => writersAsleep(init) === 3, "the writers to be held up");
    init.resumeReading();
    for (const run of runs) {
      await run.exit(30_000);
      expect(run.outputBytes).toBe(3_000_000);
    }
  });
});

describe("the window for stdin", () => {
  test("what a command does not read is held, and STDIN_CREDIT comes as it is read", async () => {
    const init = await Init.start();
    const run = init.sh("read go; cat | wc -c", { stdin: true });
    const bytes = Buffer.alloc(262_144, "a\n");
    run.stdin(bytes);
    await init.until(() => run.stdinCredit > 0, "credit");
    run.stdin(bytes.subarray(0, run.stdinCredit));
    run.stdinEof();
    await run.exit();
    expect(Number(run.stdout)).toBeGreaterThan(262_144);
  });

  test("megabytes pass through cat in both directions", async () => {
    const init = await Init.start();
    const run = init.exec(["cat"], { stdin: true });
    const total = 8 * 1024 * 1024;
    const chunk = Buffer.alloc(65_536, "0123456789abcdef");
    let sent = 0;
    while (sent < total) {
      await init.until(() => 262_144 + run.stdinCredit - sent >= chunk.length, "the window");
      run.stdin(chunk);
      sent += chunk.length;
    }
    run.stdinEof();
    await run.exit();
    expect(run.outputBytes).toBe(total);
    expect(run.stdout.slice(0, 16) + run.stdout.slice(-16)).toBe("0123456789abcdef0123456789abcdef");
  });

  test("a worker that sends more than the window is answered with FAIL, and its command is gone", async () => {
    const init = await Init.start();
    const run = init.sh("sleep 100", { stdin: true });
    // What the pipe takes is not in the window any more.
    run.stdin(Buffer.alloc(largePipeBytes + 262_144 + 65_536 * 2));
    expect(await run.failCode()).toBe("bad-request");
    expect(init.marked()).toEqual([]);
  });

  test("a command that closes its stdin lets the worker's writer come to its end", async () => {
    const init = await Init.start();
    const run = init.sh("exec <&-; echo closed; sleep 0.3", { stdin: true });
    await run.output("closed");
    const total = 1024 * 1024;
    for (let sent = 0; sent < total; sent += 65_536) {
      await init.until(() => 262_144 + run.stdinCredit - sent >= 65_536, "the window");
      if (run.last === undefined) run.stdin(Buffer.alloc(65_536));
      else break;
    }
    expect((await run.exit()).value).toBe(0);
  });

  test("stdin for a command that takes none is thrown away", async () => {
    const init = await Init.start();
    const run = init.sh("sleep 0.1; cat");
    run.stdin("unasked");
    run.stdinEof();
    expect((await run.exit()).value).toBe(0);
    expect(run.stdout).toBe("");
    expect(run.frames.some((frame) => frame.type === Type.FAIL)).toBe(false);
  });
});
