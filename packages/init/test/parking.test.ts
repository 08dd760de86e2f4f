import { describe, expect, test } from "vitest";
import type { Channel } from "./support/channel.ts";
import { Init, isRoot } from "./support/init-process.ts";
import { records, Type } from "./support/wire.ts";

const places = [
  ["as an ordinary process", false],
  ["as process 1", true],
] as const;

function park(init: Init): Channel {
  const channel = init.channel();
  init.send(Type.PARK, channel.number);
  return channel;
}

describe.each(places.filter(([, asProcess1]) => isRoot || !asProcess1))("PARK %s", (_, asProcess1) => {
  test("PARK is answered when commands, what they left behind and file operations have ended", async () => {
    const init = new Init({ asProcess1 });
    await init.hello(60_000);
    await init.sh("setsid sleep 1000 & (trap '' TERM; sleep 1000) & :", { drainMs: 10 }).exit();
    const run = init.sh("sleep 1000");
    await run.started();
    const write = init.file([1, 2], [2, "half"], [8, 10]);
    write.stdin("abc");
    const parked = park(init);
    expect((await parked.end()).type).toBe(Type.DONE);
    expect(init.marked()).toEqual([]);
    // Answered before, not after: nothing of an old holder's channels comes later.
    expect((await run.exit()).reason).toBe(2);
    expect(write.last).toBeDefined();
  });

  test("after PARK init refuses every frame until the next HELLO", async () => {
    const init = new Init({ asProcess1 });
    await init.hello(400, 5n);
    await park(init).end();
    init.send(Type.PING, 0, records([1, 60_000]));
    expect((await init.sh("touch ran").fail()).code).toBe("lease-over");
    expect((await init.file([1, 3], [2, ""]).fail()).code).toBe("lease-over");
    expect((await park(init).fail()).code).toBe("busy");
    // Longer than the lease: the watchdog has nothing to do, and the next holder hears of none.
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect((await init.sh("touch ran").fail()).code).toBe("lease-over");
    const ack = await init.hello(60_000, 6n);
    expect(ack.number(2)).toBe(0);
    const after = init.sh("ls");
    expect((await after.exit()).value).toBe(0);
    expect(after.stdout).toBe("");
  });
});

describe("parked init", () => {
  test("a parked init keeps to its epochs: a lower HELLO is fenced, and changes nothing", async () => {
    const init = new Init();
    await init.hello(60_000, 5n);
    await park(init).end();
    init.send(Type.HELLO, 0, records([1, Buffer.alloc(16, 7)], [2, 60_000]), 4n);
    await init.nextControl(({ type }) => type === Type.FENCED);
    expect((await init.sh("true").fail()).code).toBe("lease-over");
    await init.hello(60_000, 6n);
    expect((await init.sh("true").exit()).value).toBe(0);
  });
});
