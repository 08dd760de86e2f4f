import { mkdir, readdir, rm, symlink } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { startRequest, type TestHost, test } from "../support/host.ts";
import { python, sh } from "./inside.ts";

async function linkDirectory(host: TestHost): Promise<string> {
  const root = join(host.workspacesRoot, ".link");
  const [name = ""] = await readdir(root);
  return join(root, name);
}

describe("tenant", () => {
  test("a tenant finds no socket to connect to, and no place to put one", async ({ host }) => {
    const sandbox = await host.sandbox();
    expect(sandbox.origin.link).toBe("unix");
    // The worker has removed its listener before the first command runs.
    expect(await readdir(await linkDirectory(host))).toEqual([]);
    const answers = await python<Record<string, string>>(
      sandbox,
      `
import errno, json, os, socket
LINK = "/.berth/link"
def name(call):
    try: return str(call())
    except OSError as error: return errno.errorcode[error.errno]
def bind(path):
    s = socket.socket(socket.AF_UNIX); s.bind(path)
def connect(path):
    s = socket.socket(socket.AF_UNIX); s.connect(path)
named = [line.split()[7] for line in open("/proc/net/unix").read().splitlines()[1:] if len(line.split()) > 7]
print(json.dumps({
    "list": name(lambda: os.listdir(LINK)),
    "listen": name(lambda: bind(LINK + "/0123456789abcdef0123456789abcdef")),
    "create": name(lambda: os.open(LINK + "/x", os.O_CREAT | os.O_WRONLY)),
    "link": name(lambda: os.symlink("/workspace", LINK + "/x")),
    "chmod": name(lambda: os.chmod(LINK, 0o777)),
    "rename": name(lambda: os.rename(LINK, "/.berth/other")),
    "remove": name(lambda: os.rmdir(LINK)),
    "init's descriptors": name(lambda: os.listdir("/proc/1/fd")),
    "a way through init": name(lambda: os.open("/proc/1/root", os.O_RDONLY)),
    **{path: name(lambda: connect(path)) for path in named},
    **{path + " there": name(lambda: connect(LINK + "/" + os.path.basename(path))) for path in named},
}))`,
    );
    // The name that the worker's socket had is shown for init's. Nothing has it any more.
    for (const [what, answer] of Object.entries(answers))
      expect(`${what}: ${answer}`).toMatch(/: (EACCES|EPERM|EROFS|ENOENT)$/);
    expect(JSON.stringify(answers)).not.toContain(host.workspacesRoot);
  });

  test("a tenant cannot take init's connected socket, nor those of its keepers", async ({ host }) => {
    const sandbox = await host.sandbox();
    const taken = await python<string[]>(
      sandbox,
      `
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
taken = []
for pid in (int(one) for one in os.listdir("/proc") if one.isdigit() and int(one) != os.getpid()):
    handle = libc.syscall(434, pid, 0)
    for fd in range(32):
        if libc.syscall(438, handle, fd, 0) >= 0: taken.append(f"{pid}:{fd}")
for fd in os.listdir("/proc/self/fd"):
    try: target = os.readlink(f"/proc/self/fd/{fd}")
    except OSError: continue
    if target.startswith("socket:"): taken.append(target)
print(json.dumps(taken))`,
    );
    expect(taken).toEqual([]);
  });

  test("a tenant that lies in wait in the background neither sees nor hinders the link of an adoption", async ({
    host,
  }) => {
    const first = await host.sandbox();
    // Lists the directory again and again, without a pause.
    await sh(first, "(while :; do ls /.berth/link >> seen 2>/dev/null; done) >/dev/null 2>&1 & echo started");
    first.detach();
    const second = await host.sandbox({ epoch: 2 });
    expect(second.origin).toMatchObject({ how: "adopted", link: "unix" });
    expect((await sh(second, "cat seen")).stdout).toBe("");
    expect(await readdir(await linkDirectory(host))).toEqual([]);
  });
});

describe("host's directory of links", () => {
  test("the host's directory of links is not followed where a link lies in its place: the start is refused", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    await sandbox.stop();
    const directory = await linkDirectory(host);
    await rm(directory, { recursive: true });
    await symlink("/tmp", directory);
    await expect(host.driver().start(startRequest())).rejects.toMatchObject({ code: "workspace-unusable" });
  });

  test("the host's directory of links loses what a worker that died while it listened had left in it", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    await sandbox.stop();
    const directory = await linkDirectory(host);
    const dead = createServer();
    await new Promise<void>((resolve) => dead.listen(join(directory, "left"), resolve));
    const again = await host.sandbox();
    expect(again.origin.link).toBe("unix");
    expect(await readdir(directory)).toEqual([]);
    dead.close();
  });

  test("the host's directory of links that the container no longer sees leaves it its stdio", async ({
    host,
  }) => {
    const first = await host.sandbox();
    const directory = await linkDirectory(host);
    first.detach();
    await rm(directory, { recursive: true });
    await mkdir(directory, { mode: 0o711 });
    const second = await host.sandbox({ epoch: 2 });
    expect(second.origin).toMatchObject({ how: "adopted", link: "stdio" });
    expect((await sh(second, "echo works")).stdout).toBe("works\n");
  });

  test("the host's directory of links goes with the workspace", async ({ host }) => {
    const driver = host.driver();
    const sandbox = await host.sandbox({}, driver);
    await sandbox.stop();
    await driver.removeEmptyWorkspace(sandbox.key);
    expect(await readdir(join(host.workspacesRoot, ".link"))).toEqual([]);
  });
});

test("without a unix link stdio carries commands and files", async ({ host }) => {
  const sandbox = await host.sandbox({}, host.driver({ unixLink: false }));
  expect(sandbox.origin.link).toBe("stdio");
  const large = Buffer.alloc(3_000_000, "berth ");
  await sandbox.files.write("large", large);
  expect(Buffer.from((await sandbox.files.read("large")).bytes).equals(large)).toBe(true);
  const { stdout } = await sh(sandbox, "wc -c < large");
  expect(stdout).toBe("3000000\n");
});
