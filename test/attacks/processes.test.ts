import { describe, expect } from "vitest";
import { test } from "../support/host.ts";
import { processes, processesFromOutside, python, sh, syscalls, threadLeftBehind } from "./inside.ts";

const init = "/.berth/init --workspace /workspace --link /.berth/link";
const quick = { timeoutMs: 500, graceMs: 200 };

describe("after a timeout nothing of the command is left", () => {
  const escapes: Record<string, string> = {
    "that ignores TERM": "trap '' TERM; while :; do sleep 4711; done",
    "that ignores every signal it can, in every child":
      "for n in $(seq 1 31); do trap '' $n 2>/dev/null; done; sleep 4711 & sleep 4711 & wait",
    "whose children made sessions of their own": "setsid sleep 4711 & setsid setsid sleep 4711 & sleep 4711",
    "that double-forked daemons with closed descriptors":
      "sh -c 'setsid sh -c \"exec <&- >&- 2>&-; (sleep 4711 &) ; sleep 4711\" &' ; sleep 4711",
    "whose children are stopped": "sleep 4711 & kill -STOP $!; setsid sleep 4711 & kill -STOP $!; sleep 4711",
    "that left a process whose main thread has exited": threadLeftBehind(
      "time.sleep(4711)",
      "time.sleep(4711)",
    ),
    "that forks and exits in a chain, faster than any scan":
      "perl -e 'use POSIX; while (1) { fork and POSIX::_exit(0); POSIX::setsid(); $0 = q(4711) }' & sleep 4711",
    "that forks two chains and a bush of sleepers":
      "for n in 1 2; do perl -e 'while (1) { fork and exit; $0 = q(4711) }' & done; for n in $(seq 40); do sleep 4711 & done; wait",
  };

  test.for(Object.keys(escapes))(
    "after a timeout nothing of the command is left %s",
    async (what, { host }) => {
      const driver = host.driver();
      const sandbox = await host.sandbox({}, driver);
      const { outcome } = await sh(sandbox, escapes[what] ?? "", { limits: quick });
      expect(outcome).toEqual({ kind: "timed-out", afterMs: 500 });
      const inside = await processes(sandbox);
      expect(inside.filter(({ command }) => command !== init)).toEqual([]);
      expect(inside.filter(({ state }) => state === "Z")).toEqual([]);
      const outside = await processesFromOutside(driver);
      expect(outside.filter((command) => command !== init)).toEqual([]);
      expect(sandbox.origin.restarts).toBe(0);
    },
  );
});

test("a cancelled command, and one with background: kill, leave no process behind", async ({ host }) => {
  const sandbox = await host.sandbox();
  const cancelling = new AbortController();
  const running = sandbox.exec(
    { command: "setsid sleep 4711 & echo up; sleep 4711", limits: quick },
    { signal: cancelling.signal, onOutput: () => cancelling.abort("enough") },
  );
  expect((await running).outcome).toEqual({ kind: "cancelled", reason: "enough" });
  const left = await sh(sandbox, "setsid sleep 4711 & setsid sh -c 'sleep 4711 &' &", { background: "kill" });
  expect(left.outcome).toEqual({ kind: "exited", code: 0 });
  expect((await processes(sandbox)).filter(({ command }) => command !== init)).toEqual([]);
});

test("a process whose main thread has exited counts as background, and cancel and background kill end it", async ({
  host,
}) => {
  const sandbox = await host.sandbox();
  const left = async () => (await processes(sandbox)).filter(({ command }) => command !== init);
  const cancelling = new AbortController();
  const cancelled = await sandbox.exec(
    {
      command: threadLeftBehind("time.sleep(4711)", 'print("up", flush=True); time.sleep(4711)'),
      limits: quick,
    },
    { signal: cancelling.signal, onOutput: () => cancelling.abort("enough") },
  );
  expect(cancelled.outcome).toEqual({ kind: "cancelled", reason: "enough" });
  expect(await left()).toEqual([]);
  const killed = await sandbox.exec({ command: threadLeftBehind("time.sleep(4711)"), background: "kill" });
  expect(killed).toMatchObject({ outcome: { kind: "exited", code: 0 }, backgroundProcesses: 0 });
  expect(await left()).toEqual([]);
  const kept = await sandbox.exec({ command: threadLeftBehind("time.sleep(4711)") });
  expect(kept).toMatchObject({ outcome: { kind: "exited", code: 0 }, backgroundProcesses: 1 });
  expect(await left()).toMatchObject([{ state: "Z" }]);
  expect(sandbox.origin.restarts).toBe(0);
});

describe("process 1", () => {
  test("process 1 survives every signal a tenant can send", async ({ host }) => {
    const sandbox = await host.sandbox();
    // 64 signals, each also queued with a made-up sender; then the group of everything.
    const sent = await python<string[]>(
      sandbox,
      `${syscalls}
info = (ctypes.c_int * 32)()
results = set()
for number in range(1, 65):
    try: os.kill(1, number)
    except OSError as error: results.add(errno.errorcode[error.errno])
    info[0], info[2] = number, -1
    results.add(call(129, 138, 1, number, info))
print(json.dumps(sorted(results)))`,
    );
    expect(sent).toContain("ok");
    expect(await sh(sandbox, "echo alive")).toMatchObject({ stdout: "alive\n" });
    expect(sandbox.origin.restarts).toBe(0);
  });

  test("process 1 outlives a tenant that kills or stops everything else, keepers included", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const killed = await sh(sandbox, "sleep 4711 & setsid sleep 4711 & kill -KILL -1; sleep 1");
    expect(killed.outcome).toEqual({ kind: "signalled", signal: 9 });
    const stopped = await sh(sandbox, "sleep 4711 & kill -STOP -1; sleep 4711", { limits: quick });
    expect(stopped.outcome).toEqual({ kind: "timed-out", afterMs: 500 });
    const ownKeeper = await sh(sandbox, "sleep 4711 & kill -KILL $PPID; sleep 1; echo went on");
    expect(ownKeeper.outcome).toEqual({ kind: "signalled", signal: 9 });
    expect((await processes(sandbox)).filter(({ command }) => command !== init)).toEqual([]);
    expect(sandbox.origin.restarts).toBe(0);
  });

  test("process 1 sets its idle keepers going again when they are stopped behind its back", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile: { exec: { ...quick, timeoutMs: 2_000 } } });
    const atOnce = () => Promise.all(Array.from({ length: 4 }, () => sh(sandbox, "sleep 0.2; echo alive")));
    await atOnce();
    // Every child of process 1 but the keeper of this very command.
    const stopped = await sh(
      sandbox,
      `for p in $(ps -o pid= --ppid 1); do [ $p = $PPID ] || { kill -STOP $p; echo $p; }; done`,
    );
    expect(stopped.stdout.trim().split("\n").length).toBeGreaterThan(1);
    for (const { stdout } of await atOnce()) expect(stdout).toBe("alive\n");
    expect(sandbox.origin.restarts).toBe(0);
  });

  test("process 1 and its keepers cannot be traced, read or written by the tenant", async ({ host }) => {
    const sandbox = await host.sandbox();
    const answers = await python<Record<string, Record<string, string>>>(
      sandbox,
      `${syscalls}
def opened(path, flags):
    try: os.close(os.open(path, flags)); return "ok"
    except OSError as error: return errno.errorcode[error.errno]
def linked(path):
    try: return os.readlink(path)
    except OSError as error: return errno.errorcode[error.errno]
def listed(path):
    try: return str(os.listdir(path))
    except OSError as error: return errno.errorcode[error.errno]
class Vector(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
buffer = ctypes.create_string_buffer(64)
local = Vector(ctypes.addressof(buffer), 64)
def attempts(pid):
    remote = Vector(int(open("/proc/self/maps").read().split("-")[0], 16), 64)
    pidfd = libc.syscall(ctypes.c_long(434), pid, 0)
    return {
        "PTRACE_ATTACH": call(101, 117, 16, pid, None, None),
        "PTRACE_SEIZE": call(101, 117, 0x4206, pid, None, None),
        "process_vm_readv": call(310, 270, pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0),
        "process_vm_writev": call(311, 271, pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0),
        "pidfd_getfd": call(438, 438, pidfd, 1, 0),
        "kcmp": call(312, 272, pid, os.getpid(), 0, 1, 1),
        "mem": opened(f"/proc/{pid}/mem", os.O_RDWR),
        "environ": opened(f"/proc/{pid}/environ", os.O_RDONLY),
        "fd": listed(f"/proc/{pid}/fd"),
        "exe": linked(f"/proc/{pid}/exe"),
        "root": linked(f"/proc/{pid}/root"),
        "oom_score_adj": opened(f"/proc/{pid}/oom_score_adj", os.O_WRONLY),
        **{f"fd/{n}": opened(f"/proc/{pid}/fd/{n}", os.O_WRONLY) for n in range(8)},
    }
print(json.dumps({"process 1": attempts(1), "the keeper": attempts(os.getppid())}))`,
    );
    for (const [whose, attempts] of Object.entries(answers)) {
      for (const [what, answer] of Object.entries(attempts)) {
        expect(`${whose} ${what} ${answer}`).toMatch(/ (EPERM|EACCES|EBADF)$/);
      }
    }
    expect(await sh(sandbox, "echo alive")).toMatchObject({ stdout: "alive\n" });
  });

  test("process 1 keeps its limits: a tenant of the same uid can lower its own only", async ({ host }) => {
    const sandbox = await host.sandbox();
    const { stdout } = await sh(
      sandbox,
      `prlimit --pid 1 --nofile=4:4 --cpu=1:1 --fsize=0:0 2>&1 | grep -c 'not permitted'
prlimit --pid $PPID --nofile=4:4 2>&1 | grep -c 'not permitted'
grep -h 'open files' /proc/1/limits; ulimit -n 99; ulimit -n`,
    );
    expect(stdout.replace(/ +/g, " ")).toBe("1\n1\nMax open files 4096 4096 files \n99\n");
  });
});

describe("scheduling", () => {
  test("a tenant of the same uid cannot change how process 1 and the keepers are scheduled", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const answers = await python<Record<string, string>>(
      sandbox,
      `${syscalls}
import struct
zero = (ctypes.c_int * 1)()
attributes = struct.pack("IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0) # SCHED_IDLE
one_cpu = (ctypes.c_ulong * 16)(1)
def attempts(pid, group):
    return {
        "setpriority process": call(141, 140, 0, pid, 19),
        "setpriority group": call(141, 140, 1, group, 19),
        "setpriority user": call(141, 140, 2, os.getuid(), 19),
        "setpriority everybody": call(141, 140, 2, 0, 19),
        "sched_setscheduler": call(144, 119, pid, 5, zero),
        "sched_setparam": call(142, 118, pid, zero),
        "sched_setattr": call(314, 274, pid, attributes, 0),
        "ioprio_set process": call(251, 30, 1, pid, 3 << 13),
        "ioprio_set group": call(251, 30, 2, group, 3 << 13),
        "ioprio_set user": call(251, 30, 3, os.getuid(), 3 << 13),
    }
print(json.dumps({
    **{"process 1 " + what: answer for what, answer in attempts(1, 1).items()},
    **{"the keeper " + what: answer for what, answer in attempts(os.getppid(), os.getpgid(os.getppid())).items()},
    "process 1 sched_setaffinity": call(203, 122, 1, 128, one_cpu),
}))`,
    );
    const allowed = Object.entries(answers).filter(([, answer]) => answer !== "EPERM");
    expect(Object.keys(answers)).toHaveLength(21);
    expect(allowed).toEqual([]);
  });

  test("nice, taskset, chrt and ionice work for a tenant, and its threads can bind each other to processors", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const { stdout, stderr } = await sh(
      sandbox,
      `nice -n 7 nice; taskset -c 0 nproc; chrt --batch 0 echo batch; ionice -c 3 ionice
python3 -c '
import os, threading
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
os.setpriority(os.PRIO_PROCESS, 0, 12)
done = threading.Event()
other = threading.Thread(target=done.wait); other.start()
os.sched_setaffinity(other.native_id, {0})
print(os.sched_getscheduler(0) == os.SCHED_IDLE, os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(other.native_id))
done.set()'`,
    );
    expect({ stdout, stderr }).toEqual({ stdout: "7\n1\nbatch\nidle\nTrue 12 {0}\n", stderr: "" });
  });
});

describe("nothing is gained by", () => {
  test("crashing writes no core anywhere, and the limit cannot be raised", async ({ host }) => {
    const sandbox = await host.sandbox();
    for (const [name, signal] of [
      ["SEGV", 11],
      ["ABRT", 6],
      ["QUIT", 3],
    ] as const) {
      const crash = await sh(sandbox, `cd /tmp && kill -${name} $$`);
      expect(crash.outcome).toEqual({ kind: "signalled", signal });
    }
    const { stdout } = await sh(
      sandbox,
      "ulimit -c unlimited; awk '/core/ { print $5, $6 }' /proc/$$/limits; ls -A /workspace /tmp /var/tmp /dev/shm /run",
    );
    // One byte: no core, and no helper of the host's, which a limit of 0 would not keep from running.
    expect(stdout).toBe("1 1\n/dev/shm:\n\n/run:\n\n/tmp:\n\n/var/tmp:\n\n/workspace:\n");
  });

  test("setuid programs, the image's own or the tenant's own, change no id", async ({ host }) => {
    const sandbox = await host.sandbox();
    const seen = await python<{ uid: number; image: number; ids: string[]; noNewPrivs: string }>(
      sandbox,
      `
import glob, json, os, shutil, stat, subprocess, time
def ids(pid): return {l.split(":")[0]: l.split()[1:] for l in open(f"/proc/{pid}/status") if l.startswith(("Uid", "Gid", "NoNewPrivs"))}
image = [p for d in ("/usr/bin", "/usr/sbin", "/usr/lib") for p in glob.glob(d + "/**", recursive=True)
         if os.path.isfile(p) and os.stat(p).st_mode & stat.S_ISUID and os.stat(p).st_uid == 0]
shutil.copy("/bin/sleep", "/workspace/mine"); os.chmod("/workspace/mine", 0o6755)
shutil.copy("/bin/sleep", "/tmp/mine"); os.chmod("/tmp/mine", 0o6755)
found = set()
for argv in [["/workspace/mine", "9"], ["/tmp/mine", "9"], ["su"], ["passwd"]]:
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while os.path.exists(f"/proc/{child.pid}/exe") and os.readlink(f"/proc/{child.pid}/exe").endswith("python3.11"): time.sleep(0.001)
    try: found.update(ids(child.pid)["Uid"] + ids(child.pid)["Gid"])
    except (FileNotFoundError, ProcessLookupError, KeyError): pass
    child.kill(); child.wait()
print(json.dumps(dict(uid=os.getuid(), image=len(image), ids=sorted(found), noNewPrivs=ids("self")["NoNewPrivs"][0])))`,
    );
    expect(seen.image).toBeGreaterThan(0);
    expect(seen.uid).toBeGreaterThan(0);
    expect(seen.ids).toEqual([String(seen.uid)]);
    expect(seen.noNewPrivs).toBe("1");
  });

  test("asking for capabilities gains none: all five sets are empty, for commands and for process 1", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const { stdout } = await sh(
      sandbox,
      "cat /proc/self/status /proc/1/status | grep -E '^(Cap|NoNewPrivs|Seccomp:)'",
    );
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => line.split(/\s+/));
    expect(lines).toHaveLength(14);
    for (const [name, value] of lines) {
      expect(`${name} ${value}`).toMatch(/^(Cap... 0{16}|Cap...: 0{16}|NoNewPrivs: 1|Seccomp: 2)$/);
    }
  });
});
