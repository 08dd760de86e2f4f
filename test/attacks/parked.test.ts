import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
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
  test("no process of a tenant survives its sandbox's parking, however it hides", async ({ host }) => {
    const first = await host.sandbox({ epoch: 1, profile: { limits: { pids: 60 } } });
    await first.exec({ command: hiders });
    expect(await threadsIn(host)).toBeGreaterThan(4);
    expect(await first.park()).toBe(true);
    expect(await threadsIn(host)).toBe(1);
    expect(await host.driver().evict(first.key)).toBe(true);
  });
});

/** 64 MiB that no path and no process's own table shows: in a socket that is in flight in itself, by memfd and by a deleted file. */
const holders = `
import fcntl, os, socket, time
def send(through, fd): socket.send_fds(through, [b"x"], [fd])
memory = os.memfd_create("held"); os.write(memory, bytes(32 << 20))
gone = os.open("gone", os.O_RDWR | os.O_CREAT); os.unlink("gone"); os.write(gone, bytes(32 << 20))
lock = os.open("lock", os.O_RDWR | os.O_CREAT); fcntl.flock(lock, fcntl.LOCK_EX)
record = os.open("record", os.O_RDWR | os.O_CREAT); fcntl.lockf(record, fcntl.LOCK_EX)
one, two = socket.socketpair()
for fd in (memory, gone, lock, one.fileno(), two.fileno()): send(one, fd); send(two, fd)
for fd in (memory, gone, one.detach()): os.close(fd)
os.set_inheritable(lock, True); os.set_inheritable(two.fileno(), True)
if os.fork() == 0:
    os.setsid(); os.execvp("sleep", ["sleep", "907"])
print("holds", flush=True); time.sleep(908)
`;

describe("parked container", () => {
  test("a parked container keeps no file, memory or lock that a tenant's processes passed on or inherited", async ({
    host,
  }) => {
    const first = await host.sandbox({ epoch: 1 });
    await first.files.write("holders.py", holders);
    await first.exec({
      command: "python3 holders.py > said & until grep -q holds said; do sleep 0.05; done",
    });
    expect(await first.park()).toBe(true);
    expect(await threadsIn(host)).toBe(1);
    // The kernel collects sockets that only they themselves hold a moment later.
    const memory = async () => (await container(host).stats({ stream: false })).memory_stats.usage ?? 0;
    await expect.poll(memory, { timeout: 20_000 }).toBeLessThan(32 << 20);
    const next = await host.sandbox({ epoch: 2 });
    expect(next.origin.how).toBe("adopted");
    const locks =
      'flock -n lock echo lock; python3 -c \'import fcntl; fcntl.lockf(open("record", "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB); print("record")\'';
    expect(shown(await next.exec({ command: locks }))).toMatchObject({
      stdout: "lock\nrecord\n",
      stderr: "",
    });
    expect((await next.usage()).unlinkedBytes).toBe(0);
  });

  test("a parked container serves no other sandbox, even if the note of it names another", async ({
    host,
  }) => {
    const acme = await host.sandbox({ epoch: 1 });
    await acme.files.write("secret", "of acme");
    const other = await host.sandbox({ epoch: 1, key: "other" });
    await other.files.write("mine", "of other");
    expect([await acme.park(), await other.park()]).toEqual([true, true]);
    const [folder = ""] = await readdir(join(host.workspacesRoot, ".parked"));
    const notes = join(host.workspacesRoot, ".parked", folder);
    const records = await Promise.all(
      (await readdir(notes)).map(async (name) => ({
        path: join(notes, name),
        record: JSON.parse(await readFile(join(notes, name), "utf8")),
      })),
    );
    const ofAcme = records.find(({ record }) => record.key === "acme");
    const ofOther = records.find(({ record }) => record.key === "other");
    const spare = ofOther?.record.containerId;
    await writeFile(
      ofOther?.path ?? "",
      JSON.stringify({ ...ofOther?.record, containerId: ofAcme?.record.containerId }),
    );
    await rm(ofAcme?.path ?? "");
    await docker.getContainer(spare).remove({ force: true });
    const next = await host.sandbox({ epoch: 2, key: "other" });
    expect(next.origin.how).toBe("started");
    expect(shown(await next.exec({ command: "ls" })).stdout).toBe("mine\n");
  });

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
