import { mkdtemp, rm } from "node:fs/promises";
import { arch, tmpdir } from "node:os";
import { join } from "node:path";
import Docker from "dockerode";
import { describe, expect } from "vitest";
import { test as base } from "../support/host.ts";
import { python, syscalls } from "./inside.ts";
import { type Filter, filterReader, passes, type SystemCall } from "./seccomp-filter.ts";

const docker = new Docker();
const isArm = arch() === "arm64";
const architecture = isArm ? 0xc00000b7 : 0xc000003e;
const highestCall = 700;
/** Flags of namespaces, socket families and the like: what filters look at besides the number. */
const firstArguments = [
  0, 1, 2, 3, 5, 8, 10, 16, 17, 38, 40, 0x20000, 0x20008, 0x10000000, 0x7e020000, 0xffffffff,
];

const test = base.extend<{ filtersOf: (pid: number) => Promise<Filter[]> }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  filtersOf: async ({}, use) => {
    const folder = await mkdtemp(join(tmpdir(), "berth-seccomp-"));
    await use(await filterReader(folder));
    await rm(folder, { recursive: true, force: true });
  },
});

/** Calls that engines before 25 do not list: memory protection keys, cachestat, fchmodat2, map_shadow_stack, the futex family. */
const newerThanTheEngine = new Set([
  ...(isArm ? [288, 289, 290] : [329, 330, 331]),
  451,
  452,
  453,
  454,
  455,
  456,
]);

function everyCall(): SystemCall[] {
  return Array.from({ length: highestCall }, (_, number) =>
    firstArguments.map((first) => ({ number, arguments: [first] })),
  ).flat();
}

/** The filter that the engine installs of itself, read from a container without any setting of ours. */
async function engineDefault(filtersOf: (pid: number) => Promise<Filter[]>): Promise<Filter[]> {
  const container = await docker.createContainer({
    Image: "berth-sandbox:bookworm",
    Cmd: ["sleep", "60"],
    Labels: { "berth.fleet": `test-${process.pid}-seccomp` },
    NetworkDisabled: true,
    HostConfig: { CapDrop: ["ALL"], SecurityOpt: ["no-new-privileges"] },
  });
  try {
    await container.start();
    const { State } = await container.inspect();
    return await filtersOf(State.Pid);
  } finally {
    await container.remove({ force: true });
  }
}

async function sandboxFilters(
  fleet: string,
  filtersOf: (pid: number) => Promise<Filter[]>,
): Promise<Filter[]> {
  const [found] = await docker.listContainers({ filters: { label: [`berth.fleet=${fleet}`] } });
  const { State } = await docker.getContainer(found?.Id ?? "").inspect();
  return await filtersOf(State.Pid);
}

describe.skipIf(process.getuid?.() !== 0)("the system calls of a sandbox (filters are read as root)", () => {
  test("Berth's seccomp profile refuses every call that the engine's default refuses", async ({
    host,
    filtersOf,
  }) => {
    await host.sandbox();
    const sandbox = await sandboxFilters(host.fleet, filtersOf);
    const [ours] = sandbox;
    const theirs = await engineDefault(filtersOf);
    expect(sandbox).toHaveLength(2);
    expect(theirs).toHaveLength(1);
    const calls = everyCall();
    const looser = calls.filter(
      (call) => passes(ours ? [ours] : [], call, architecture) && !passes(theirs, call, architecture),
    );
    const numbers = new Set(looser.map(({ number }) => number));
    expect([...numbers].filter((number) => !newerThanTheEngine.has(number))).toEqual([]);
    const count = (filters: readonly Filter[]) =>
      calls.filter((call) => passes(filters, call, architecture)).length;
    expect(count(sandbox)).toBeGreaterThan(3_000);
    expect(count(sandbox)).toBeLessThan(count(theirs));
  });

  test("no call of another architecture passes the filters of a sandbox", async ({ host, filtersOf }) => {
    await host.sandbox();
    const filters = await sandboxFilters(host.fleet, filtersOf);
    for (const foreign of [0x40000003, 0x40000028, isArm ? 0xc000003e : 0xc00000b7]) {
      expect(everyCall().filter((call) => passes(filters, call, foreign))).toEqual([]);
    }
  });
});

test("a tenant cannot change a file's project id or flags, nor type into a terminal of another process", async ({
  host,
}) => {
  const sandbox = await host.sandbox();
  const answers = await python<Record<string, string>>(
    sandbox,
    `${syscalls}
import fcntl, pty
open("/workspace/file", "w").close()
fd = os.open("/workspace/file", os.O_RDWR)
leader, follower = pty.openpty()
def control(fd, request, argument):
    try: fcntl.ioctl(fd, request, argument)
    except OSError as error: return errno.errorcode[error.errno]
    return "ok"
print(json.dumps({
    "FS_IOC_FSSETXATTR": control(fd, 0x401c5820, bytearray(28)),
    "FS_IOC_SETFLAGS": control(fd, 0x40086602, bytearray(8)),
    "BTRFS_IOC_SUBVOL_CREATE": control(fd, 0x5000940e, bytearray(4096)),
    "BTRFS_IOC_SNAP_CREATE_V2": control(fd, 0x50009417, bytearray(4096)),
    "FS_IOC_FSSETXATTR with high bits": call(16, 29, fd, ctypes.c_ulong(0x1_401c5820), ctypes.create_string_buffer(28)),
    "TIOCSTI": control(follower, 0x5412, b"x"),
    "TIOCLINUX": control(follower, 0x541c, b"\\x03"),
    "file_setattr": call(469, 469, -100, b"/workspace/file", ctypes.create_string_buffer(32), 32, 0),
    "an ordinary ioctl": control(follower, 0x5413, bytearray(8)),
}))`,
  );
  expect(answers).toEqual({
    FS_IOC_FSSETXATTR: "EPERM",
    FS_IOC_SETFLAGS: "EPERM",
    "FS_IOC_FSSETXATTR with high bits": "EPERM",
    BTRFS_IOC_SUBVOL_CREATE: "EPERM",
    BTRFS_IOC_SNAP_CREATE_V2: "EPERM",
    TIOCSTI: "EPERM",
    TIOCLINUX: "EPERM",
    file_setattr: "ENOSYS",
    "an ordinary ioctl": "ok",
  });
});

test("a tenant cannot bring the kernel to start the host's core dump helper for a crash", async ({
  host,
}) => {
  const sandbox = await host.sandbox();
  const limits = await python<number[][]>(
    sandbox,
    `${syscalls}
import resource
limits = [resource.getrlimit(resource.RLIMIT_CORE)]
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
limits.append(resource.getrlimit(resource.RLIMIT_CORE))
call(160, 164, 4, (ctypes.c_ulong * 2)(0, 0))
limits.append(resource.getrlimit(resource.RLIMIT_CORE))
# A pointer whose low half is zero.
page = libc.mmap
page.restype = ctypes.c_void_p
page.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
at = page(0x7_0000_0000, 4096, 3, 0x100022, -1, 0)
call(302, 261, 0, 4, ctypes.c_void_p(at), None)
limits.append(resource.getrlimit(resource.RLIMIT_CORE))
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
limits.append(resource.getrlimit(resource.RLIMIT_NOFILE))
print(json.dumps(limits))`,
  );
  expect(limits).toEqual([
    [1, 1],
    [1, 1],
    [1, 1],
    [1, 1],
    [256, 256],
  ]);
});
