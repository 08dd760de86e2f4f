import { rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { isFault, tenantId } from "@berth/protocol";
import Docker from "dockerode";
import { describe, expect } from "vitest";
import { startRequest, type TestHost } from "../support/host.ts";
import { shown } from "../support/shown.ts";
import { bind, container, enginePath, image, missingImage, mounting, type Spec, test } from "./proxy.ts";

/** What a worker that was taken over would ask for. */
const escapes: Record<string, (host: TestHost) => (spec: Spec) => void> = {
  "the host's root as a workspace": () => mounting(bind("/")),
  "a way out of the workspaces": (host) => mounting(bind(`${host.workspacesRoot}/../..`)),
  "all workspaces at once": (host) => mounting(bind(host.workspacesRoot)),
  "a workspace in another place": (host) => mounting(bind(join(host.workspacesRoot, "acme"), "/etc")),
  "an init that it can write to": (host) =>
    mounting(bind(join(host.workspacesRoot, ".init/0123456789abcdef"), "/.berth/init")),
  "a directory for its sockets that it can write to": (host) =>
    mounting(bind(join(host.workspacesRoot, ".link", "0".repeat(32)), "/.berth/link")),
  "the sockets of all sandboxes": (host) =>
    mounting(bind(join(host.workspacesRoot, ".link"), "/.berth/link", { ReadOnly: true })),
  "a workspace in the place of its sockets": (host) =>
    mounting(bind(join(host.workspacesRoot, "acme"), "/.berth/link", { ReadOnly: true })),
  "a mount with an option of its own": (host) => (spec) => {
    spec.HostConfig.Mounts = [
      bind(join(host.workspacesRoot, "acme"), "/workspace", { BindOptions: { Propagation: "shared" } }),
    ];
  },
  "binds by the other field": () => (spec) => {
    spec.HostConfig.Binds = ["/:/host"];
  },
  privileges: () => (spec) => {
    spec.HostConfig.Privileged = true;
  },
  "privileges in another spelling": () => (spec) => {
    spec.hostconfig = { privileged: true };
  },
  "a capability": () => (spec) => {
    spec.HostConfig.CapAdd = ["SYS_ADMIN"];
  },
  "a device": () => (spec) => {
    spec.HostConfig.Devices = [
      { PathOnHost: "/dev/sda", PathInContainer: "/dev/sda", CgroupPermissions: "r" },
    ];
  },
  "the host's processes": () => (spec) => {
    spec.HostConfig.PidMode = "host";
  },
  "the host's network": () => (spec) => {
    spec.HostConfig.NetworkMode = "host";
  },
  "no seccomp": () => (spec) => {
    spec.HostConfig.SecurityOpt = ["no-new-privileges", "seccomp=unconfined"];
  },
  "no limit to its memory": () => (spec) => {
    delete spec.HostConfig.Memory;
  },
  root: () => (spec) => {
    spec.User = "0:0";
  },
  "a system user of the host": () => (spec) => {
    spec.User = "1:1";
  },
  "a group of the host": () => (spec) => {
    spec.User = "2000000:999";
  },
  "another sandbox's workspace": () => (spec) => {
    spec.User = "2000001:2000001";
  },
  "another image of the host": () => (spec) => {
    spec.Image = "berth-sandbox:bookworm";
  },
  "another runtime": () => (spec) => {
    spec.HostConfig.Runtime = "io.containerd.runc.v2";
  },
  "a file of the host for its users": () => mounting(bind("/etc/passwd", "/etc/passwd", { ReadOnly: true })),
  "another fleet's name": () => (spec) => {
    spec.Labels = { "berth.fleet": "other" };
  },
};

describe("what the driver does", () => {
  test("the driver's calls pass the proxy: starting, attaching, running, files, listing, adopting, removing", async ({
    host,
    proxy,
  }) => {
    const sandbox = await host.sandbox({ profile: { image } }, proxy.driver(host));
    expect(sandbox.origin.link).toBe("unix");
    expect((await proxy.driver(host).list()).map(({ key }) => key)).toEqual(["acme"]);
    const run = await sandbox.exec({ command: "cat; echo out; echo err >&2; exit 3", stdin: "in\n" });
    expect(shown(run)).toEqual({
      outcome: { kind: "exited", code: 3 },
      stdout: "in\nout\n",
      stderr: "err\n",
    });
    await sandbox.files.write("large", Buffer.alloc(2_000_000, 7));
    expect(shown(await sandbox.exec({ command: "wc -c < large" })).stdout).toBe("2000000\n");
    const adopted = await host.sandbox({ epoch: 2, profile: { image } }, proxy.driver(host));
    expect(adopted.origin.how).toBe("adopted");
    await Promise.all([sandbox.stop(), adopted.stop()]);
    expect(await proxy.driver(host).list()).toEqual([]);
    expect(proxy.log).toBe("");
  });

  test("a sandbox behind the proxy has a workspace to read or none, a tenant's tools and an agent's directory", async ({
    host,
    proxy,
  }) => {
    const said = async (profile: object, command: string) => {
      const sandbox = await host.sandbox({ profile: { image, ...profile } }, proxy.driver(host));
      const { stdout } = shown(await sandbox.exec({ command }));
      await sandbox.stop();
      return stdout;
    };
    expect(await said({}, "echo kept > kept; ls")).toBe("kept\n");
    const write = "cat kept 2>/dev/null; echo x 2>/dev/null > own && ls";
    expect(await said({ workspace: "ro" }, write)).toBe("kept\n");
    expect(await said({ workspace: "none" }, write)).toBe("own\n");
    const shared = { toolsAccess: "rw", agentAccess: "rw" };
    expect(await said(shared, "echo t > /tools/bin/t; echo a > /agent/a; ls /tools/bin /agent")).toMatch(
      /\/tools\/bin:\nt\n/,
    );
    expect(await said({ toolsAccess: "ro" }, "cat /tools/bin/t; echo no 2>/dev/null > /tools/bin/t")).toBe(
      "t\n",
    );
    expect(proxy.log).toBe("");
  });

  test("a sandbox behind the proxy has the files of a peer, copied in a container of their own", async ({
    host,
    proxy,
  }) => {
    const peer = await host.sandbox({ key: "globex", profile: { image } }, proxy.driver(host));
    await peer.files.write("plan", "the plan\n");
    await peer.stop();
    const peers = async () => [tenantId.parse("globex")];
    const reader = await proxy.driver(host).start({ ...startRequest({ profile: { image } }), peers });
    expect(shown(await reader.exec({ command: "cat /team/globex/plan; touch /team/globex/x" })).stdout).toBe(
      "the plan\n",
    );
    await reader.stop();
    expect(await proxy.driver(host).list()).toEqual([]);
    expect(proxy.log).toBe("");
  });

  test("a set-up as root is refused in the proxy's words, and nothing is made", async ({ host, proxy }) => {
    const profile = { image, setup: { command: `: ${host.fleet}`, root: true } };
    await expect(proxy.driver(host).start(startRequest({ profile }))).rejects.toMatchObject({
      code: "sandbox-start-failed",
      context: {
        detail: expect.stringMatching(/^its set-up as root \(setup\.root of the profile\): berth-/),
      },
    });
    // The line comes through a pipe, behind the answer.
    await expect.poll(() => proxy.log).toContain("berth-derived:");
    expect(await host.driver().list()).toEqual([]);
  });

  test("an error of the engine passes the proxy: an unknown image is reported in the engine's own words", async ({
    host,
    proxy,
  }) => {
    const missing = proxy.driver(host).start(startRequest({ profile: { image: missingImage } }));
    await expect(missing).rejects.toSatisfy((error) => isFault(error, "image-missing"));
  });
});

describe("worker that was taken over", () => {
  test("a worker that was taken over can make what the attempts below start from", async ({
    host,
    proxy,
  }) => {
    const made = await proxy.docker.createContainer(container(host));
    await made.remove({ force: true });
    expect(proxy.log).toBe("");
  });

  test("a worker that was taken over gets no container that is more than a sandbox", async ({
    host,
    proxy,
  }) => {
    for (const [what, change] of Object.entries(escapes)) {
      const making = proxy.docker.createContainer(container(host, change(host)));
      await expect(making, what).rejects.toMatchObject({ statusCode: 403 });
    }
    const refused = () => proxy.log.split("\n").filter((line) => line.includes('"event":"engine.refused"'));
    await expect.poll(refused).toHaveLength(Object.keys(escapes).length);
  });

  test("a worker that was taken over gets no link mounted in the place of a workspace, of init or of its sockets", async ({
    host,
    proxy,
  }) => {
    const evil = join(host.workspacesRoot, "evil");
    await symlink("/", evil);
    await symlink("/etc/shadow", join(host.workspacesRoot, ".init/abcdef"));
    await symlink("/etc", join(host.workspacesRoot, ".etc"));
    await symlink("/etc/shadow", join(host.workspacesRoot, ".init/passwd.0"));
    await symlink("/run", join(host.workspacesRoot, ".link", "a".repeat(32)));
    const mounts = [
      bind(evil),
      bind(join(host.workspacesRoot, ".init/abcdef"), "/.berth/init", { ReadOnly: true }),
      bind(join(host.workspacesRoot, ".etc/passwd.0"), "/etc/passwd", { ReadOnly: true }),
      bind(join(host.workspacesRoot, ".link", "a".repeat(32)), "/.berth/link", { ReadOnly: true }),
    ];
    for (const mount of mounts) {
      const spec = container(host, mounting(mount));
      await expect(proxy.docker.createContainer(spec), mount.Source).rejects.toMatchObject({
        statusCode: 403,
      });
    }
  });

  test("a worker that was taken over cannot start a container whose workspace became a link after it was made", async ({
    host,
    proxy,
  }) => {
    const workspace = join(host.workspacesRoot, "acme");
    const made = await proxy.docker.createContainer(container(host));
    try {
      await rename(workspace, `${workspace}-aside`);
      await symlink("/", workspace);
      await expect(made.start()).rejects.toMatchObject({ statusCode: 403 });
      await rm(workspace);
      await rename(`${workspace}-aside`, workspace);
      await made.start();
    } finally {
      await made.remove({ force: true });
    }
  });

  test("a worker that was taken over can neither look at nor pull an image that is not its fleet's", async ({
    proxy,
  }) => {
    const calls = [
      "GET /images/berth-sandbox:bookworm/json",
      "POST /images/create?fromImage=127.0.0.1:1/other&tag=latest",
      "POST /images/create?fromImage=127.0.0.1:1/nothing&tag=other",
    ];
    expect(await Promise.all(calls.map((call) => proxy.status(call)))).toEqual([403, 403, 403]);
    expect(await proxy.status(`GET /images/${image}/json`)).toBe(200);
  });

  test("a worker that was taken over neither sees nor touches containers of another fleet", async ({
    proxy,
  }) => {
    const engine = new Docker({ socketPath: enginePath });
    const other = await engine.createContainer({ Image: image, Cmd: ["sleep", "60"] });
    try {
      const seen = proxy.docker.getContainer(other.id);
      const attempts = await Promise.allSettled([
        seen.inspect(),
        seen.start(),
        seen.remove({ force: true }),
        seen.attach({ stream: true, stdin: true, hijack: true }),
      ]);
      for (const attempt of attempts) expect(attempt).toMatchObject({ reason: { statusCode: 404 } });
      expect(await proxy.docker.listContainers({ all: true })).toEqual([]);
    } finally {
      await other.remove({ force: true });
    }
  });

  test("a worker that was taken over gets no other call through", async ({ proxy }) => {
    const calls = [
      "GET /containers/x/archive?path=/",
      "PUT /containers/x/archive",
      "GET /containers/x/logs?stdout=1",
      "POST /containers/x/exec",
      "POST /exec/x/start",
      "POST /containers/x/restart",
      "POST /containers/x/update",
      "GET /containers%2Fx/json",
      "GET /images/a/../../containers/x/json",
      "POST /images/create?fromSrc=http://127.0.0.1/",
      "POST /build",
      "POST /commit?container=x",
      "GET /v1.41/volumes",
      "GET /secrets",
      "GET /events",
    ];
    expect(await Promise.all(calls.map((call) => proxy.status(call)))).toEqual(calls.map(() => 403));
  });

  test("a worker that was taken over gets no second request through behind one that did not become a stream", async ({
    proxy,
  }) => {
    const upgrade = "Host: x\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";
    const first = `POST /containers/missing/attach HTTP/1.1\r\n${upgrade}`;
    const answer = await proxy.raw(`${first}GET /version HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 404 /);
    expect(answer).not.toContain("ApiVersion");
  });
});
