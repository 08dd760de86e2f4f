import { readFile } from "node:fs/promises";
import { encodeFrame, FrameType, RecordWriter } from "@berth/init";
import Docker from "dockerode";
import { describe, expect } from "vitest";
import { type TestHost, test } from "../support/host.ts";
import { shown } from "../support/shown.ts";

const docker = new Docker(
  process.env.DOCKER_HOST?.startsWith("unix://") ? { socketPath: process.env.DOCKER_HOST.slice(7) } : {},
);
const container = (host: TestHost) => docker.getContainer(`berth-${host.fleet}-acme`);

/** On the host: threads of every process in the container. */
async function threadsIn(host: TestHost): Promise<number> {
  const { Processes } = await container(host).top();
  const pids = (Processes as string[][]).map(([, pid = ""]) => pid);
  const counts = pids.map(async (pid) => {
    const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
    return Number(/^Threads:\s+(\d+)$/m.exec(status)?.[1] ?? 0);
  });
  return (await Promise.all(counts)).reduce((sum, one) => sum + one, 0);
}

/** Leaders that have exited while a thread of theirs runs on, double forks, stopped ones, and one that forks as fast as it can. */
const hiders = [
  "python3 -c 'import threading,ctypes,time; threading.Thread(target=time.sleep,args=(900,)).start(); ctypes.CDLL(None).syscall(60,0)' &",
  "(setsid sh -c '(sleep 901 &) &' ) &",
  "sh -c 'kill -STOP $$; sleep 902' &",
  "sh -c 'trap \"\" TERM INT HUP; sleep 903' &",
  "sh -c 'f() { sleep 0.01; f & }; f' &",
  "sleep 0.3",
].join("\n");

describe("what a tenant leaves behind", () => {
  test("what a tenant leaves behind does not survive its sandbox's parking, whatever it hides in", async ({
    host,
  }) => {
    const first = await host.sandbox({ epoch: 1, profile: { limits: { pids: 60 } } });
    await first.exec({ command: hiders });
    expect(await threadsIn(host)).toBeGreaterThan(4);
    expect(await first.park()).toBe(true);
    expect(await threadsIn(host)).toBe(1);
    expect(await host.driver().evict(first.key)).toBe(true);
  });
});

describe("parked container", () => {
  test("a parked container starts nothing for the holder that parked it, nor for one with a PING or a lower epoch", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ epoch: 5 });
    await sandbox.park();
    const stream = await container(host).attach({ stream: true, stdin: true, stdout: true, hijack: true });
    const command = (at: number, channel: number) =>
      encodeFrame(
        FrameType.exec,
        channel,
        at,
        new RecordWriter().add(1, "/bin/sh").add(1, "-c").add(1, "sleep 904").add(8, 1000).finish(),
      );
    stream.write(encodeFrame(FrameType.ping, 0, 5, new RecordWriter().add(1, 60_000).finish()));
    stream.write(command(5, 77));
    stream.write(command(4, 78));
    const answered = Promise.withResolvers<void>();
    let said = "";
    stream.on("data", (bytes: Buffer) => {
      said += bytes.toString("latin1");
      if (said.includes("lease-over")) answered.resolve();
    });
    await answered.promise;
    expect(await threadsIn(host)).toBe(1);
    (stream as unknown as { destroy(): void }).destroy();
    const next = await host.sandbox({ epoch: 6 });
    expect(next.origin.how).toBe("adopted");
    expect(shown(await next.exec({ command: "echo again" })).stdout).toBe("again\n");
  });
});
