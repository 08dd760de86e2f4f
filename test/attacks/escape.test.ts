import { expect } from "vitest";
import { test } from "../support/host.ts";
import { python, sh, syscalls } from "./inside.ts";

test("nothing in /proc, /sys or /dev can be written but a process's own entries and harmless devices", async ({
  host,
}) => {
  const sandbox = await host.sandbox();
  const { tried, writable } = await python<{ tried: number; writable: string[] }>(
    sandbox,
    `
import json, os
tried, writable = 0, []
for top in ("/proc", "/sys", "/dev"):
    for here, folders, files in os.walk(top):
        folders[:] = [f for f in folders if not (here == "/proc" and (f.isdigit() or f in ("self", "thread-self")))]
        for name in files:
            path = os.path.join(here, name)
            tried += 1
            try: fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
            except OSError: continue
            # What the engine hides has /dev/null in its place.
            if os.fstat(fd).st_rdev != os.makedev(1, 3): writable.append(path)
            os.close(fd)
print(json.dumps(dict(tried=tried, writable=sorted(writable))))`,
  );
  expect(tried).toBeGreaterThan(1_000);
  // Pressure files take a trigger for the one who opened them, and change nothing for others.
  const harmless =
    /^\/(dev\/(full|random|urandom|zero|ptmx|pts\/ptmx|stdout|stderr|fd\/\d+)|proc\/pressure\/\w+)$/;
  expect(writable.filter((path) => !harmless.test(path))).toEqual([]);
});

test("a sandbox cannot use mount, namespaces, chroot, modules, keys, bpf and the like", async ({ host }) => {
  const sandbox = await host.sandbox();
  const answers = await python<Record<string, string>>(
    sandbox,
    `${syscalls}
buffer = ctypes.create_string_buffer(256)
print(json.dumps({
    "mount tmpfs": call(165, 40, b"none", b"/tmp", b"tmpfs", 0, None),
    "mount bind": call(165, 40, b"/", b"/tmp", None, 4096, None),
    "remount the root": call(165, 40, b"/", b"/", None, 32 | 4096, None),
    "umount /proc/kcore": call(166, 39, b"/proc/kcore", 2),
    "umount /workspace": call(166, 39, b"/workspace", 2),
    "fsopen": call(430, 430, b"tmpfs", 0),
    "open_tree": call(428, 428, -100, b"/", 1),
    "move_mount": call(429, 429, -100, b"/tmp", -100, b"/run", 0),
    "mount_setattr": call(442, 442, -100, b"/", 0, buffer, 32),
    "pivot_root": call(155, 41, b"/tmp", b"/tmp"),
    "chroot": call(161, 51, b"/tmp"),
    **{f"unshare {flag:#x}": call(272, 97, flag) for flag in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)},
    "clone into a user namespace": call(56, 220, 0x10000000 | 17, None, None, None, None),
    "clone3": call(435, 435, None, 0),
    "setns": call(308, 268, os.open("/proc/self/ns/net", os.O_RDONLY), 0),
    "bpf": call(321, 280, 0, buffer, 48),
    "perf_event_open": call(298, 241, buffer, 0, -1, -1, 0),
    "userfaultfd": call(323, 282, 0),
    "keyctl": call(250, 219, 0, -3, 1),
    "add_key": call(248, 217, b"user", b"name", b"value", 5, -3),
    "request_key": call(249, 218, b"user", b"name", None, -3),
    "open_by_handle_at": call(304, 265, -100, buffer, 0),
    "init_module": call(175, 105, buffer, 1, b""),
    "finit_module": call(313, 273, 0, b"", 0),
    "kexec_load": call(246, 104, 0, 0, None, 0),
    "reboot": call(169, 142, 0xfee1dead, 672274793, 0x1234567, None),
    "swapon": call(167, 224, b"/workspace", 0),
    "settimeofday": call(164, 170, buffer, None),
    "sethostname": call(170, 161, b"x", 1),
    "syslog": call(103, 116, 3, buffer, 256),
    "acct": call(163, 89, b"/workspace/acct"),
    "quotactl": call(179, 60, 0, None, 0, None),
    "lookup_dcookie": call(212, 18, 0, buffer, 256),
    "iopl": call(172, None, 3),
    "ioperm": call(173, None, 0, 1, 1),
    "become root": call(105, 146, 0),
    "become root's group": call(106, 144, 0),
    "other groups": call(116, 159, 1, ctypes.byref(ctypes.c_int(0))),
    "more capabilities": call(126, 91, (ctypes.c_int * 2)(0x20080522, 0), (ctypes.c_uint * 6)(*[0xffffffff] * 6)),
    "a lower nice value": call(141, 140, 0, 0, -5),
    "a real-time class": call(144, 119, 0, 1, ctypes.byref(ctypes.c_int(1))),
    "mknod of the host's disk": call(133, None, b"/workspace/disk", 0o60666, 0xfe00) if not arm else call(None, 33, -100, b"/workspace/disk", 0o60666, 0xfe00),
    "mknod of memory": call(259, 33, -100, b"/workspace/mem", 0o20666, 0x101),
}))`,
  );
  for (const [door, answer] of Object.entries(answers))
    expect(`${door}: ${answer}`).toMatch(/: (EPERM|ENOSYS|EACCES)$/);
});

test("a sandbox has no device nodes but those that store nothing", async ({ host }) => {
  const sandbox = await host.sandbox();
  const { stdout } = await sh(
    sandbox,
    "find / -xdev \\( -type b -o -type c \\); find /dev /workspace /tmp \\( -type b -o -type c \\)",
  );
  const nodes = stdout
    .trim()
    .split("\n")
    .filter((path) => !/^\/dev\/(full|null|pts\/ptmx|random|tty|urandom|zero)$/.test(path));
  expect(nodes).toEqual([]);
});

test("io_uring is refused, and calls of another architecture do not bypass the filter", async ({ host }) => {
  const sandbox = await host.sandbox();
  const answers = await python<Record<string, string>>(
    sandbox,
    `${syscalls}
import mmap
answers = {f"io_uring {number}": call(number, number, 8, ctypes.create_string_buffer(120), 0, 0, None, 0) for number in (425, 426, 427)}
if not arm:
    x32 = 0x40000000
    answers["x32 socket(AF_VSOCK)"] = call(x32 + 41, None, 40, 1, 0)
    answers["x32 io_uring_setup"] = call(x32 + 425, None, 8, ctypes.create_string_buffer(120))
    def int80(number, first, second):
        # mov eax, number; mov ebx, first; mov ecx, second; xor edx, edx; int 0x80; in a child, for a kernel without it kills
        code = b"\\x53\\xb8" + number.to_bytes(4, "little") + b"\\xbb" + first.to_bytes(4, "little") + b"\\xb9" + second.to_bytes(4, "little") + b"\\x31\\xd2\\xcd\\x80\\x5b\\xc3"
        page = mmap.mmap(-1, 4096, prot=7); page.write(code)
        child = os.fork()
        if child == 0:
            result = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
            os._exit(0 if result >= 0 else min(255, -result))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return "ok" if status == 0 else "killed" if status < 0 else errno.errorcode.get(status, str(status))
    answers["int 0x80 getpid"] = int80(20, 0, 0)
    answers["int 0x80 socket(AF_VSOCK)"] = int80(359, 40, 1)
    answers["int 0x80 io_uring_setup"] = int80(425, 8, 0)
print(json.dumps(answers))`,
  );
  for (const [what, answer] of Object.entries(answers))
    expect(`${what}: ${answer}`).toMatch(/: (EPERM|ENOSYS|EACCES|EAFNOSUPPORT|killed)$/);
});

test("a sandbox can write only its workspace and its small private tmpfs; the root stays read-only", async ({
  host,
}) => {
  const sandbox = await host.sandbox();
  const { tried, writable, root } = await python<{ tried: number; writable: string[]; root: string[] }>(
    sandbox,
    `
import errno, json, os
tried, writable = 0, []
for here, folders, files in os.walk("/"):
    if here == "/": folders[:] = [f for f in folders if f not in ("proc", "sys")]
    tried += 1
    try: os.chmod(here, 0o777)
    except OSError: pass
    path = os.path.join(here, ".attack")
    try: os.close(os.open(path, os.O_CREAT | os.O_WRONLY)); os.unlink(path); writable.append(here)
    except OSError: pass
# A directory that is not ours says EACCES on a disk that could be written.
root = []
for path in ("/.attack", "/etc/.attack", "/usr/bin/.attack", "/.berth/attack"):
    try: os.open(path, os.O_CREAT | os.O_WRONLY)
    except OSError as error: root.append(errno.errorcode[error.errno])
print(json.dumps(dict(tried=tried, writable=sorted(writable), root=root)))`,
  );
  expect(tried).toBeGreaterThan(500);
  expect(root).toEqual(Array(4).fill("EROFS"));
  expect(writable).toEqual(["/dev/mqueue", "/dev/shm", "/run", "/tmp", "/var/tmp", "/workspace"]);
});
