import { spawnSync } from "node:child_process";
import { gzipSync } from "node:zlib";
import { packTar, type TarItem } from "@berth/tar";
import { describe, expect } from "vitest";
import { test } from "../support/host.ts";
import { done, names, refused, run, text } from "../support/job-kinds.ts";

describe("archive", () => {
  const script = `
    set -e; cd "$(mktemp -d)"
    mkdir -p d/empty; printf hello > d/f; chmod 750 d/f; ln d/f d/same; ln -s ../d/f d/link
    long=$(printf 'n%.0s' $(seq 180)); echo long > d/$long
    head -c 600000 /dev/zero > d/large
    tar -cf - .`;
  const archive = spawnSync("sh", ["-c", script], { maxBuffer: 10_000_000 }).stdout;

  test.for([
    ["plain", archive],
    ["zipped", gzipSync(archive)],
  ] as const)("archive in, %s, unpacks files, directories and links", async ([_, packed], { host }) => {
    const sandbox = await host.sandbox();
    const request = {
      kind: "archive",
      direction: "in",
      path: "to",
      content: packed.toString("base64"),
    } as const;
    expect(await run(sandbox, request)).toMatchObject({ outcome: done, value: { count: 7 } });
    expect(await names(sandbox)).toEqual([
      "to",
      "to/d",
      "to/d/empty",
      "to/d/f",
      "to/d/large",
      "to/d/link",
      `to/d/${"n".repeat(180)}`,
      "to/d/same",
    ]);
    expect((await sandbox.files.stat("to/d/f")).mode & 0o777).toBe(0o750);
    expect((await sandbox.files.stat("to/d/large")).size).toBe(600_000);
    expect(await text(sandbox, "to/d/link")).toBe("hello");
    expect(await text(sandbox, "to/d/same")).toBe("hello");
    expect((await run(sandbox, request)).outcome, "over what is there").toEqual(done);
  });

  test("archive in with one bad entry writes nothing at all", async ({ host }) => {
    const sandbox = await host.sandbox();
    const common = { mode: 0o644, modifiedMs: 0 };
    const good: TarItem = { ...common, path: "good", type: "file", bytes: Buffer.from("x") };
    const bad: [TarItem[], RegExp][] = [
      [[{ ...good, path: "../out" }], /"\.\." segment/],
      [[{ ...good, path: "/etc/passwd" }], /absolute/],
      [[{ ...good, path: "/workspace/x" }], /absolute/],
      [[{ ...good, path: "a\nb" }], /control byte/],
      [[{ ...common, path: "l", type: "symlink", target: "../out" }], /leads out of the workspace/],
      [[{ ...common, path: "l", type: "symlink", target: "/etc" }], /leads out of the workspace/],
      [
        [
          { ...common, path: "l", type: "symlink", target: "d" },
          { ...good, path: "l/x" },
        ],
        /l\/x is beneath l/,
      ],
      [[{ ...good, path: "good/x" }], /good\/x is beneath good/],
    ];
    for (const [items, message] of bad) {
      const content = (await packTar([good, ...items])).toString("base64");
      const result = await run(sandbox, { kind: "archive", direction: "in", content });
      expect(result.outcome).toEqual(refused("bad-archive", message));
    }
    for (const bytes of [
      Buffer.from("no tar"),
      gzipSync(archive).subarray(0, 400),
      archive.subarray(0, 3_000),
    ]) {
      const content = bytes.toString("base64");
      const result = await run(sandbox, { kind: "archive", direction: "in", content });
      expect(result.outcome).toMatchObject({ kind: "refused", code: "bad-archive" });
    }
    expect(await names(sandbox)).toEqual([]);
  });

  test("archive in that exceeds the quota reports how far it got", async ({ host }) => {
    const sandbox = await host.sandbox({ profile: { limits: { workspaceBytes: 4_000_000 } } });
    // Fifty megabytes in fifty kilobytes.
    const zeros = Buffer.alloc(10_000_000);
    const items = [1, 2, 3, 4, 5].map(
      (index): TarItem => ({ path: `zeros${index}`, type: "file", mode: 0o644, modifiedMs: 0, bytes: zeros }),
    );
    const content = gzipSync(await packTar(items)).toString("base64");
    const result = await run(sandbox, { kind: "archive", direction: "in", content });
    expect(result.outcome).toEqual(refused("quota", /quota.*; 0 of the archive's 5 entries/));
  });

  test("archive out is what archive in takes, and what tar reads", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.exec({
      command: "mkdir -p a/b/empty; echo x > a/b/x; chmod 755 a/b/x; ln -s b/x a/link; echo no > no",
    });
    const out = await run(sandbox, { kind: "archive", direction: "out", paths: ["a", "a/b"] });
    expect(out).toMatchObject({ outcome: done, value: { encoding: "base64", count: 5 } });
    const content = out.value.content ?? "";
    const listed = spawnSync("tar", ["-tvf", "-"], {
      input: Buffer.from(content, "base64"),
      encoding: "utf8",
    });
    expect(
      listed.stdout
        .trim()
        .split("\n")
        .map((line) => line.replace(/^(\S+) .*:\d\d /, "$1 ")),
    ).toEqual([
      "drwxr-xr-x a/",
      "drwxr-xr-x a/b/",
      "drwxr-xr-x a/b/empty/",
      "-rwxr-xr-x a/b/x",
      "lrwxrwxrwx a/link -> b/x",
    ]);
    expect((await run(sandbox, { kind: "archive", direction: "in", path: "copy", content })).outcome).toEqual(
      done,
    );
    expect(await text(sandbox, "copy/a/link")).toBe("x\n");
    const all = await run(sandbox, { kind: "archive", direction: "out" });
    expect(all.value.count).toBe(12);
  });

  test("archive out that a result cannot carry is refused", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.exec({ command: "head -c 1048576 /dev/zero > f" });
    expect((await run(sandbox, { kind: "archive", direction: "out" })).outcome).toEqual(
      refused("too-large", /larger than the 1048576 bytes/),
    );
    expect((await run(sandbox, { kind: "archive", direction: "out", paths: ["none"] })).outcome).toEqual(
      refused("not-found", /none/),
    );
    await sandbox.exec({ command: "mkdir many; cd many; seq 2048 | xargs touch; (sleep 900 &)" });
    const paths = ["many", "none/x", "none/y"];
    expect((await run(sandbox, { kind: "archive", direction: "out", paths })).outcome).toEqual(
      refused("too-large", /larger than the 1048576 bytes/),
    );
    expect(sandbox.origin.restarts).toBe(0);
    expect((await sandbox.exec({ command: "pgrep sleep" })).outcome).toMatchObject({ code: 0 });
  });
});
