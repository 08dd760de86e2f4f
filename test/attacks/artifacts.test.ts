import type { JobRequestInput } from "@berth/protocol";
import { describe, expect } from "vitest";
import { paths, refused, run, test } from "../support/artifacts.ts";
import { before } from "../support/gated-sandbox.ts";

describe("artifacts that are not what they seem", () => {
  test("a glob that matches links, pipes, sockets and devices keeps none of them, and the result names each", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    const result = await run(artifacts, sandbox, {
      kind: "code",
      language: "python",
      source: `
import os, socket
os.mkdir('artifacts'); os.chdir('artifacts')
open('real', 'w').write('real')
os.symlink('/etc/passwd', 'outside'); os.symlink('/proc/1/environ', 'proc'); os.symlink('real', 'inside')
os.symlink('/dev/zero', 'device'); os.symlink('..', 'up'); os.mkfifo('pipe')
socket.socket(socket.AF_UNIX).bind('socket')`,
    });
    expect(result.outcome).toEqual({ kind: "exited", code: 0 });
    expect(paths(result)).toEqual(["artifacts/real"]);
    const names = ["device", "inside", "outside", "pipe", "proc", "socket", "up"];
    expect(refused(result)).toEqual(
      Object.fromEntries(names.map((name) => [`artifacts/${name}`, "not-a-file"])),
    );
  });

  test("an artifacts/ directory that leads out of the workspace is refused", async ({ host, artifacts }) => {
    const sandbox = await host.sandbox();
    const result = await run(artifacts, sandbox, {
      kind: "code",
      language: "sh",
      source: "ln -s /etc artifacts",
    });
    expect(paths(result)).toEqual([]);
  });

  test.for([
    ["read", "ln -sf /etc/passwd artifacts/a", ["a"]],
    ["read", "rm artifacts/a && mkfifo artifacts/a", ["a"]],
    // Several small ones are read together.
    ["readMany", "ln -sf /etc/passwd artifacts/a; rm artifacts/b && mkfifo artifacts/b", ["a", "b"]],
  ] as const)(
    "a file that changes into a link or a pipe before its %s is refused: %s",
    async ([call, command, names], { host, artifacts }) => {
      const sandbox = await host.sandbox();
      const swapped = before(sandbox, call, () => sandbox.exec({ command }));
      const source = `mkdir artifacts; cd artifacts; for name in ${names.join(" ")}; do echo x > $name; done`;
      const result = await run(artifacts, swapped, { kind: "code", language: "sh", source });
      expect(paths(result)).toEqual([]);
      expect(refused(result)).toEqual(
        Object.fromEntries(names.map((name) => [`artifacts/${name}`, "unreadable"])),
      );
    },
  );

  test("a file with holes as large as the disk is refused by its size, unread", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    let reads = 0;
    const result = await run(
      artifacts,
      before(sandbox, "read", async () => void reads++),
      { kind: "exec", command: "truncate -s 900G holes || truncate -s 900M holes", artifacts: ["holes"] },
    );
    expect(refused(result)).toEqual({ holes: "too-large" });
    expect(reads).toBe(0);
  });

  test("a file that grows while it is read ends where it was, or is refused when it is too large", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    const growing = before(sandbox, "read", () =>
      sandbox.exec({ command: "head -c 5000000 /dev/zero >> f" }),
    );
    const request = { kind: "exec", command: "echo small > f", artifacts: ["f"] } satisfies JobRequestInput;
    const small = await run(artifacts.with({ maxBytes: 1_000_000 }), growing, request);
    expect(refused(small)).toEqual({ f: "too-large" });
    const whole = await run(artifacts, growing, request);
    expect(whole.value.artifacts?.[0]).toMatchObject({ size: 5_000_006 });
    await sandbox.exec({ command: "while :; do head -c 1000000 /dev/zero >> g; done & sleep 1" });
    const endless = await run(artifacts, sandbox, { kind: "exec", command: "true", artifacts: ["g"] });
    expect(paths(endless).concat(Object.keys(refused(endless)))).toEqual(["g"]);
  });

  test("an artifact's file that vanishes before it is read is named, and the others are kept", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    const vanishing = before(sandbox, "read", (path) =>
      sandbox.exec({ argv: ["rm", "-f", path === "a" ? "b" : "x"] }),
    );
    const result = await run(artifacts, vanishing, {
      kind: "exec",
      command: "echo 1 > a; echo 2 > b; echo 3 > c",
      artifacts: ["?"],
    });
    expect(paths(result)).toContain("c");
    expect({ ...refused(result), b: "unreadable" }).toEqual({ b: "unreadable" });
  });

  test("of ten thousand matching files a hundred become artifacts, and the result counts the others", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    const result = await run(artifacts, sandbox, {
      kind: "code",
      language: "sh",
      source: "mkdir artifacts; cd artifacts; seq -f 'f%05g' 9900 | xargs touch",
    });
    expect(result.outcome).toEqual({ kind: "exited", code: 0 });
    expect(paths(result)).toHaveLength(100);
    expect(paths(result)[99]).toBe("artifacts/f00100");
    expect(result.value.artifactsRefused).toHaveLength(20);
    expect(result.value.artifactsRefusedCount).toBe(9_800);
    expect(result.value.artifactsRefused?.[0]).toMatchObject({ path: "artifacts/f00101", code: "too-many" });
    const more = await run(artifacts, sandbox, {
      kind: "code",
      language: "sh",
      source: "cd artifacts; seq -f 'g%05g' 9900 | xargs touch",
    });
    expect(more.value.artifactsRefused?.[0]).toMatchObject({ path: "artifacts", code: "too-many" });
    expect(JSON.stringify(more.value).length).toBeLessThan(100_000);
  });

  test("artifacts whose names have a newline, or are not text, are refused", async ({ host, artifacts }) => {
    const sandbox = await host.sandbox();
    const result = await run(artifacts, sandbox, {
      kind: "code",
      language: "python",
      source: `
import os
os.mkdir('artifacts'); os.chdir(b'artifacts')
for name in [b'a\\nb', b'a\\x1bb', b'\\xff\\xfe', b'fine', ' é"\\'$(id)'.encode()]: open(name, 'w').write('x')`,
    });
    expect(paths(result)).toEqual([`artifacts/ é"'$(id)`, "artifacts/fine"]);
    expect(refused(result)).toEqual({
      "artifacts/a\nb": "unreadable",
      "artifacts/a\u001bb": "unreadable",
      "artifacts/\ufffd\ufffd": "unreadable",
    });
  });

  test("files that their owner may not read are no artifacts, and the result names them", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    const result = await run(artifacts, sandbox, {
      kind: "exec",
      command: "echo x > f; chmod 0 f",
      artifacts: ["f"],
    });
    expect(refused(result)).toEqual({ f: "unreadable" });
  });

  test("artifacts beyond the tenant's quota are named in the result, and the command's outcome stays", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    const result = await run(artifacts.with({ quotaBytes: 1_500_000 }), sandbox, {
      kind: "exec",
      command: "for f in a b c; do head -c 1000000 /dev/urandom > $f; done",
      artifacts: ["?"],
    });
    expect(result.outcome).toEqual({ kind: "exited", code: 0 });
    expect(paths(result)).toHaveLength(1);
    expect(result.value.artifactsRefused).toEqual([
      expect.objectContaining({ code: "quota", reason: expect.stringContaining("of 1.4 MB") }),
      expect.objectContaining({ code: "quota" }),
    ]);
    expect((await artifacts.store.usage("acme")).bytes).toBe(1_000_000);
    expect(await artifacts.files()).toHaveLength(1);
  });
});
