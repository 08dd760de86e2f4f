import { type AddressInfo, createServer, type Server } from "node:net";
import { networkInterfaces } from "node:os";
import Docker from "dockerode";
import { describe, expect } from "vitest";
import { test } from "../support/host.ts";
import { python, sh } from "./inside.ts";

describe("network", () => {
  /** A server of the host's own, on every address and as an abstract unix socket. */
  async function listening(where: number | string): Promise<Server> {
    const server = createServer((socket) => socket.end("reached"));
    await new Promise<void>((resolve) => server.listen(where, resolve));
    return server;
  }

  test("the network is not there: one loopback, and no way to the host, its services, the cloud's, or a name server", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const abstract = `\0berth-attack-${process.pid}`;
    const tcp = await listening(0);
    const unix = await listening(abstract);
    try {
      const port = (tcp.address() as AddressInfo).port;
      const hosts = Object.values(networkInterfaces()).flatMap((all) =>
        (all ?? []).map(({ address }) => address),
      );
      const seen = await python<{ interfaces: string[]; reached: string[]; tried: number; names: string }>(
        sandbox,
        `
import json, os, socket
targets = [(address, ${port}) for address in ${JSON.stringify(hosts)}]
targets += [("127.0.0.1", ${port}), ("172.17.0.1", 2375), ("169.254.169.254", 80), ("1.1.1.1", 53), ("8.8.8.8", 443), ("::1", ${port}), ("2606:4700:4700::1111", 53)]
reached = []
for address, port in targets:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind) as s:
            s.settimeout(2)
            try:
                s.connect((address, port)); s.send(b"x")
                if s.recv(1) is not None: reached.append(f"{address}:{port}")
            except OSError: pass
with socket.socket(socket.AF_UNIX) as s:
    try: s.connect(${JSON.stringify(abstract)}); reached.append("the abstract socket")
    except OSError: pass
try: names = str(socket.getaddrinfo("example.com", 80))
except OSError as error: names = "none"
interfaces = [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]]
print(json.dumps(dict(interfaces=interfaces, reached=reached, tried=len(targets), names=names)))`,
      );
      expect(seen.tried).toBeGreaterThan(7);
      expect(
        seen.interfaces.filter(
          (name) => !/^(lo|tunl0|sit0|ip6tnl0|gre0|gretap0|erspan0|ip_vti0|ip6_vti0|ip6gre0)$/.test(name),
        ),
      ).toEqual([]);
      expect({ reached: seen.reached, names: seen.names }).toEqual({ reached: [], names: "none" });
    } finally {
      tcp.close();
      unix.close();
    }
  });

  test("the network cannot be made: no raw or packet socket, and no socket to the machine beneath", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const answers = await python<Record<string, string>>(
      sandbox,
      `
import errno, json, socket
def made(family, kind, protocol=0):
    try: socket.socket(family, kind, protocol).close(); return "ok"
    except OSError as error: return errno.errorcode[error.errno]
print(json.dumps({
    "raw ip": made(socket.AF_INET, socket.SOCK_RAW, 1),
    "raw ipv6": made(socket.AF_INET6, socket.SOCK_RAW, 58),
    "packet": made(17, socket.SOCK_RAW, 0x0300),
    "xdp": made(44, socket.SOCK_RAW),
    "bluetooth": made(31, socket.SOCK_RAW, 1),
    "vsock stream": made(40, socket.SOCK_STREAM),
    "vsock datagram": made(40, socket.SOCK_DGRAM),
}))`,
    );
    for (const [kind, answer] of Object.entries(answers)) {
      expect(`${kind}: ${answer}`).toMatch(
        /: (EPERM|EACCES|EAFNOSUPPORT|ESOCKTNOSUPPORT|EPROTONOSUPPORT|ENODEV)$/,
      );
    }
  });
});

test("neither the engine's socket nor any other is in reach, and a command inherits three descriptors only", async ({
  host,
}) => {
  const sandbox = await host.sandbox();
  const { stdout } = await sh(
    sandbox,
    "find / -type s 2>/dev/null; ls /var/run/docker.sock /run/containerd 2>&1 | wc -l; ls /proc/self/fd | wc -l",
  );
  // `ls` itself holds the directory it lists.
  expect(stdout).toBe("2\n4\n");
});

test("the worker's environment is nowhere inside: a command sees its image's and what it was given", async ({
  host,
}) => {
  const secret = `secret-${crypto.randomUUID()}`;
  process.env.BERTH_ATTACK_SECRET = secret;
  try {
    const driver = host.driver();
    const sandbox = await host.sandbox({ profile: { image: "berth-entrypoint:test" } }, driver);
    const { stdout } = await sh(
      sandbox,
      "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'",
      { env: { GIVEN: "yes" } },
    );
    expect(stdout).not.toContain(secret);
    const names = stdout.split("\n").flatMap((line) => /^([A-Z_]+)=/.exec(line)?.[1] ?? []);
    expect([...new Set(names)].sort()).toEqual(
      [
        ...["GIVEN", "HOME", "IMAGE_SAYS", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "SHLVL", "TERM"],
        ...["TMPDIR", "USER"],
      ].filter((name) => names.includes(name)),
    );
    expect(names).toContain("IMAGE_SAYS");
    const [record] = await driver.list();
    const inspected = await new Docker().getContainer(record?.id ?? "").inspect();
    expect(JSON.stringify(inspected)).not.toContain(secret);
  } finally {
    delete process.env.BERTH_ATTACK_SECRET;
  }
});

test("another tenant's files and processes are invisible, and its uid is another", async ({ host }) => {
  const ours = await host.sandbox({ key: "acme" });
  const theirs = await host.sandbox({ key: "globex" });
  await sh(
    theirs,
    "for d in /workspace /tmp /dev/shm; do echo theirs > $d/theirs-only; done; sleep 4711 > /dev/null 2>&1 &",
  );
  const look = `
import glob, json, os
files = [os.path.join(here, name) for here, _, names in os.walk("/") for name in names if name == "theirs-only"]
commands = [open(path).read().replace("\\0", " ") for path in glob.glob("/proc/[0-9]*/cmdline") if os.path.exists(path)]
print(json.dumps(dict(files=sorted(files), sleeps=sum("sleep 47" + "11" in c for c in commands), ids=[os.getuid(), os.getgid(), *os.getgroups()],
    root=os.path.exists(${JSON.stringify(host.workspacesRoot)}))))`;
  interface Seen {
    files: string[];
    sleeps: number;
    ids: number[];
    root: boolean;
  }
  const [mine, other] = await Promise.all([python<Seen>(ours, look), python<Seen>(theirs, look)]);
  expect(mine).toMatchObject({ files: [], sleeps: 0, root: false });
  expect(other).toMatchObject({
    files: ["/dev/shm/theirs-only", "/tmp/theirs-only", "/workspace/theirs-only"],
    sleeps: 1,
    root: false,
  });
  expect(mine.ids).not.toContain(0);
  // A worker that is not root cannot give uids away.
  if (process.getuid?.() === 0) expect(mine.ids.filter((id) => other.ids.includes(id))).toEqual([]);
});

describe("image cannot loosen its sandbox:", () => {
  /** The busybox image with more settings, made by committing a container that never ran. */
  async function imageWith(changes: readonly string[], use: (image: string) => Promise<void>): Promise<void> {
    const docker = new Docker();
    const tag = `attack-${process.pid}-${Date.now().toString(36)}`;
    const seed = await docker.createContainer({ Image: "berth-entrypoint:test", Cmd: ["sh"] });
    try {
      await seed.commit({ repo: "berth-test", tag, changes: changes.join("\n") });
    } finally {
      await seed.remove();
    }
    try {
      await use(`berth-test:${tag}`);
    } finally {
      await docker.getImage(`berth-test:${tag}`).remove({ force: true });
    }
  }

  test("an image cannot loosen its sandbox: its ENTRYPOINT, USER and HEALTHCHECK do not apply", async ({
    host,
  }) => {
    await imageWith(["HEALTHCHECK --interval=1s CMD touch /tmp/health-check-ran"], async (image) => {
      const driver = host.driver();
      const sandbox = await host.sandbox({ profile: { image } }, driver);
      const { stdout } = await sh(sandbox, "id -u; cat /proc/1/cmdline | tr '\\0' ' '; ls /tmp");
      expect(stdout).toMatch(/^\d+\n\/\.berth\/init --workspace \/workspace --link \/\.berth\/link $/);
      expect(stdout).not.toMatch(/^(0|4242)\n/);
      const [record] = await driver.list();
      const { State, Config } = await new Docker().getContainer(record?.id ?? "").inspect();
      expect(State.Health).toBeUndefined();
      expect(Config.Healthcheck?.Test).toEqual(["NONE"]);
      await sandbox.stop();
    });
  });

  test("an image cannot loosen its sandbox: its VOLUME is a small private tmpfs", async ({ host }) => {
    await imageWith(["VOLUME /data /var/lib/big"], async (image) => {
      const driver = host.driver();
      const sandbox = await host.sandbox(
        { profile: { image, limits: { tmpfsBytes: 4 * 1024 * 1024 } } },
        driver,
      );
      const fill = await sh(
        sandbox,
        "for d in /data /var/lib/big; do head -c 10000000 /dev/zero > $d/fill; wc -c < $d/fill; done 2>&1",
      );
      expect(fill.stdout.match(/error|No space left/g)).toHaveLength(2);
      expect(fill.stdout.match(/^4194304$/gm)).toHaveLength(2);
      const [record] = await driver.list();
      const { Mounts } = await new Docker().getContainer(record?.id ?? "").inspect();
      expect(Mounts.map(({ Type, Destination }) => `${Type} ${Destination}`).sort()).toEqual([
        "bind /.berth/init",
        "bind /.berth/link",
        "bind /etc/group",
        "bind /etc/hosts",
        "bind /etc/passwd",
        "bind /etc/resolv.conf",
        "bind /workspace",
      ]);
      await sandbox.stop();
    });
  });
});
