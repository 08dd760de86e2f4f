import { describe, expect } from "vitest";
import { type TestHost, test } from "../support/host.ts";
import { shown } from "../support/shown.ts";

const image = "berth-busybox:test";
type Access = "none" | "ro" | "rw";

const open = (host: TestHost, key: string, access: { tools?: Access; agent?: Access }, more: object = {}) =>
  host.sandbox({
    key,
    profile: { image, toolsAccess: access.tools ?? "none", agentAccess: access.agent ?? "none", ...more },
  });

describe("tenant's tools", () => {
  test("a tenant's tools are the first in PATH of all its sandboxes, survive containers, and only rw changes them", async ({
    host,
  }) => {
    const one = await open(host, "acme.s.one", { tools: "rw" });
    const two = await open(host, "acme.s.two", { tools: "rw" });
    const said = async (sandbox: typeof one, command: string) => {
      const { outcome, stdout, stderr } = shown(await sandbox.exec({ command }));
      return outcome.kind === "exited" && outcome.code === 0 ? stdout : `${outcome.kind}: ${stderr}`;
    };
    const install =
      "printf '#!/bin/sh\\necho tool one\\n' > /tools/bin/lint && chmod +x /tools/bin/lint && lint";
    expect(await said(one, install)).toBe("tool one\n");
    expect(await said(two, "mkdir /tools/lib && lint; echo 'echo and two' >> /tools/bin/lint && lint")).toBe(
      "tool one\ntool one\nand two\n",
    );
    expect(await said(one, "echo x > /tools/lib/data && id -u")).not.toBe(await said(two, "id -u"));
    await Promise.all([one.stop(), two.stop()]);
    const later = await open(host, "acme.s.one", { tools: "ro" });
    expect(await said(later, "lint; echo $PATH; cat /tools/lib/data")).toMatch(
      /^tool one\nand two\n\/tools\/bin:\/.*\nx\n$/,
    );
    expect(await said(later, "rm /tools/bin/lint")).toMatch(/Read-only file system/);
    await expect(later.files.remove("/tools/bin/lint")).rejects.toMatchObject({ code: "denied" });
    const { items } = await later.files.list("/tools", { recursive: true });
    expect(items.map(({ path }) => path)).toEqual(["bin", "bin/lint", "lib", "lib/data"]);
    const other = await open(host, "globex", { tools: "rw" });
    expect(await said(other, "ls /tools/bin")).toBe("");
    const without = await open(host, "acme", {});
    expect(await said(without, "test -e /tools || echo $PATH")).not.toContain("/tools");
    await expect(without.files.list("/tools")).rejects.toMatchObject({ code: "outside-workspace" });
  });

  test("a tenant's tools count for the quota of each sandbox that can write them", async ({ host }) => {
    const more = { limits: { workspaceBytes: "2m" } };
    const one = await open(host, "acme.s.one", { tools: "rw" }, more);
    const fill = await one.exec({
      command: "for i in 1 2 3 4 5; do dd if=/dev/zero of=/tools/$i bs=1k count=1000; sleep 0.3; done",
    });
    expect(fill.outcome).toMatchObject({ kind: "quota-exceeded", unit: "bytes" });
    const two = await open(host, "acme.s.two", { tools: "rw" }, more);
    expect((await two.exec({ command: "echo x > /tools/more" })).outcome).toMatchObject({
      kind: "quota-exceeded",
    });
    const reader = await open(host, "acme.s.three", { tools: "ro" }, more);
    expect(shown(await reader.exec({ command: "echo x > own && cat own" })).stdout).toBe("x\n");
  });

  test("a tenant's tools lead nowhere else by a link or a clever path", async ({ host }) => {
    const one = await open(host, "acme", { tools: "rw", agent: "rw" });
    await one.exec({
      command: "ln -s /etc /tools/etc; ln -s .. /tools/up; ln -s /agent /tools/agent; echo x > /agent/own",
    });
    for (const path of ["/tools/etc/passwd", "/tools/up/etc/passwd"])
      await expect(one.files.read(path)).rejects.toMatchObject({ code: "outside-workspace" });
    for (const path of ["/tools/../etc/passwd", "/toolsmith/x", "/etc/passwd"])
      await expect(one.files.read(path)).rejects.toMatchObject({ code: "invalid-path" });
    expect((await one.files.read("/tools/agent/own")).bytes.toString()).toBe("x\n");
  });
});

describe("agent's own directory", () => {
  test("an agent's own directory is at /agent in all sandboxes with its jobs, and in no other agent's", async ({
    host,
  }) => {
    const agent = async (key: string, name: string, access: Access) => {
      const { startRequest } = await import("../support/host.ts");
      const request = startRequest({ key, profile: { image, agentAccess: access } });
      return await host.driver().start({ ...request, agent: name });
    };
    const said = async (sandbox: Awaited<ReturnType<typeof agent>>, command: string) => {
      const { stdout, stderr } = shown(await sandbox.exec({ command }));
      await sandbox.stop();
      return stdout + stderr;
    };
    expect(await said(await agent("acme.s.one", "coder", "rw"), "echo mine > /agent/notes; ls /agent")).toBe(
      "notes\n",
    );
    expect(await said(await agent("acme.s.two", "coder", "ro"), "cat /agent/notes; touch /agent/x")).toMatch(
      /^mine\ntouch: \/agent\/x: Read-only file system/,
    );
    expect(await said(await agent("acme.s.one", "writer", "rw"), "ls /agent")).toBe("");
    expect(await said(await agent("globex", "coder", "rw"), "ls /agent")).toBe("");
    // One of a key with an agent in it, without being asked for.
    const own = await open(host, "acme.a.coder", { agent: "rw" });
    expect(shown(await own.exec({ command: "cat /agent/notes" })).stdout).toBe("mine\n");
  });
});

test("a sandbox shows names for its groups and for users of Debian, and no name server of the host's", async ({
  host,
}) => {
  const profile = { agentAccess: "rw" as const };
  const sandbox = await host.sandbox({ profile });
  const said = shown(
    await sandbox.exec({
      command:
        "id -un; id -Gn; stat -c %G /agent; getent passwd www-data | cut -d: -f1; cat /etc/resolv.conf; getent hosts example.org || echo none",
    }),
  );
  expect(said.stderr).toBe("");
  expect(said.stdout).toMatch(/^sandbox\nsandbox tenant\ntenant\nwww-data\n# .* no name server\.\nnone\n$/);
});
