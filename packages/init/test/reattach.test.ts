import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Init } from "./support/init-process.ts";
import { Type } from "./support/wire.ts";

function runningOf(list: Buffer[]): Map<number, number> {
  return new Map(list.map((entry) => [entry.readUInt32BE(0), entry.readUInt32BE(4)]));
}

describe("second HELLO", () => {
  test("a second HELLO lists what still runs, by channel and pid", async () => {
    const init = await Init.start();
    const run = init.sh("sleep 1000");
    const pid = await run.started();
    const over = init.sh("true");
    await over.exit();
    const running = runningOf((await init.hello(60_000, 2n)).all(3));
    expect(running).toEqual(new Map([[run.number, pid]]));
    run.kill();
    expect((await run.exit()).reason).toBe(2);
  });

  test("a second HELLO makes open channels orphans: their output is dropped, they report EXIT, and nothing blocks them", async () => {
    const init = await Init.start();
    const run = init.sh("echo before; read go < fifo; head -c 2000000 /dev/zero; exit 6", { credit: 7 });
    await init.sh("mkfifo fifo").exit();
    await run.output("before");
    await init.hello(60_000, 2n);
    init.sh("echo > fifo");
    expect(await run.exit()).toMatchObject({ kind: "exited", value: 6 });
    expect(run.stdout).toBe("before\n");
  });

  test("orphans answer KILL and nothing else", async () => {
    const init = await Init.start();
    const run = init.exec(["cat"], { stdin: true });
    await run.started();
    await init.hello(60_000, 2n);
    run.stdin("not for you");
    run.credit(1);
    await init.ping();
    expect(run.last).toBeUndefined();
    run.kill();
    expect(await run.exit()).toMatchObject({ reason: 2 });
    expect(run.stdout).toBe("");
  });

  test("a second HELLO ends a write whose bytes will never come, and leaves no trace of it", async () => {
    const init = await Init.start();
    const write = init.file([1, 2], [2, "half"], [8, 100]);
    write.stdin("only this");
    await init.until(() => readdirSync(init.workspace).length === 1, "the temporary file");
    await init.hello(60_000, 2n);
    expect(await write.failCode()).toBe("short");
    expect(readdirSync(init.workspace)).toEqual([]);
  });

  test("a second HELLO of the same epoch takes over too, as the same worker after a lost connection does", async () => {
    const init = await Init.start();
    const run = init.sh("sleep 1000");
    await run.started();
    expect((await init.hello()).all(3).length).toBe(1);
    run.kill();
    expect((await run.exit()).reason).toBe(2);
  });

  test("an orphan's channel number is taken until it is over", async () => {
    const init = await Init.start();
    const run = init.sh("sleep 1000");
    await run.started();
    await init.hello(60_000, 2n);
    init.send(Type.EXEC, run.number, init.execPayload(["true"]));
    expect(await run.failCode()).toBe("bad-request");
    const again = init.channel(run.number);
    again.kill();
    expect((await again.exit()).reason).toBe(2);
  });
});
