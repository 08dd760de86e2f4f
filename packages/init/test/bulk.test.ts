import { execFile, execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { deflateRawSync, gzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "vitest";
import { encodeFiles } from "../src/encode-files.ts";
import { readPackedEntries } from "../src/packed-entries.ts";
import { build, fuzzArchiveBinary } from "./support/build.ts";
import type { Channel } from "./support/channel.ts";
import { Op } from "./support/files.ts";
import { Init } from "./support/init-process.ts";
import type { Value } from "./support/wire.ts";

type Pairs = [number, Value | undefined][];
const check = 1;
const each = 2;
const recursive = 1;
const follow = 2;
const dirs: string[] = [];

afterEach(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true });
});

const inside = (init: Init, path: string) => join(init.workspace, path);

/** What a script leaves, as tar(1) packs it. */
function tarOf(script: string, ...options: string[]): Buffer {
  const dir = mkdtempSync(join(tmpdir(), "init-tar-"));
  dirs.push(dir);
  execFileSync("sh", ["-ec", script], { cwd: dir });
  return execFileSync("tar", [...options, "-cf", "-", "."], { cwd: dir, maxBuffer: 64_000_000 });
}

/** Feeds it as the window allows, in the background. */
function unpack(init: Init, archive: Buffer, ...more: Pairs): Channel {
  const channel = init.file([1, Op.unpack], ...more);
  void (async () => {
    for (let at = 0; at < archive.length; at += 60_000) {
      await init.until(() => channel.last !== undefined || 200_000 + channel.stdinCredit >= at, "the window");
      channel.stdin(archive.subarray(at, at + 60_000));
    }
    channel.stdinEof();
  })();
  return channel;
}

const refusals = (channel: Channel) => channel.items.map((item) => `${item.text(1)}: ${item.text(10)}`);
const file = (path: string, content = "x", mode?: number) => ({ path, bytes: Buffer.from(content), mode });

const tree = (nameBytes = 180) => `
  mkdir -p d/empty; printf hello > d/f; chmod 640 d/f; ln d/f d/same; ln -s ../d/f d/link
  echo long > d/$(printf 'n%.0s' $(seq ${nameBytes})); head -c 150000 /dev/zero > zeros`;

describe("unpack", () => {
  test.each(["gnu", "pax", "ustar"])(
    "unpack makes files, directories and links of a %s archive",
    async (format) => {
      for (const packed of [(bytes: Buffer) => bytes, (bytes: Buffer) => gzipSync(bytes)]) {
        const init = await Init.start();
        const archive = packed(tarOf(tree(format === "ustar" ? 90 : 180), `--format=${format}`));
        const seen = await unpack(init, archive, [2, "to"], [4, check]).done();
        expect(readdirSync(init.workspace)).toEqual([]);
        const done = await unpack(init, archive, [2, "to"]).done();
        expect([done.number(9), done.number(2)]).toEqual([seen.number(9), seen.number(2)]);
        expect([done.number(9), done.number(2)]).toEqual([7, 150_010]);
        expect(readFileSync(inside(init, "to/d/f"), "utf8")).toBe("hello");
        expect(statSync(inside(init, "to/d/f")).mode & 0o777).toBe(0o640);
        expect(statSync(inside(init, "to/d/f")).ino).toBe(statSync(inside(init, "to/d/same")).ino);
        expect(readlinkSync(inside(init, "to/d/link"))).toBe("../d/f");
        expect(readFileSync(inside(init, "to/zeros"))).toEqual(Buffer.alloc(150_000));
        expect((await unpack(init, archive, [2, "to"]).done()).number(9), "over what is there").toBe(7);
      }
    },
  );

  test("unpack reads gzip of every kind as zlib wrote it", async () => {
    const init = await Init.start({ binary: "release" });
    const bytes = Buffer.alloc(3_000_000);
    for (let i = 0; i < bytes.length; i++) bytes[i] = i % 97 === 0 ? (i * 7_919) >> 5 : (i >> 9) & 0x3f;
    const archive = encodeFiles([{ path: "f", bytes }]);
    const stored = Buffer.concat([archive.subarray(0, 0), gzipSync(archive, { level: 0 })]);
    const fixed = gzipSync(archive, { strategy: 4 });
    const members = Buffer.concat([gzipSync(archive.subarray(0, 700)), gzipSync(archive.subarray(700))]);
    for (const packed of [stored, fixed, members, gzipSync(archive, { level: 1 }), gzipSync(archive)]) {
      await unpack(init, packed).done();
      expect(readFileSync(inside(init, "f")).equals(bytes)).toBe(true);
    }
    for (const wrong of [
      gzipSync(archive).subarray(0, 9_000),
      Buffer.concat([gzipSync(archive).subarray(0, -8), Buffer.alloc(8)]),
      Buffer.concat([Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]), deflateRawSync(archive)]),
      Buffer.from([0x1f, 0x8b, 8, 0xe0]),
    ]) {
      expect(await unpack(init, wrong, [4, check]).fail()).toMatchObject({
        code: "bad-archive",
        message: expect.stringMatching(/gzip data is damaged/),
      });
    }
  });

  test("unpack with check refuses forbidden entries, and writes nothing", async () => {
    const init = await Init.start();
    const link = (target: string) => tarOf(`ln -s '${target}' l`);
    const bad: [Buffer, RegExp][] = [
      [encodeFiles([file("good"), file("../out")]), /"\.\.\/out" is not allowed: it has a "\.\." segment/],
      [encodeFiles([file("/etc/passwd")]), /it is absolute/],
      [encodeFiles([file("a\nb")]), /control byte/],
      [encodeFiles([file("n".repeat(256))]), /longer than 255 bytes/],
      [encodeFiles([file("a/".repeat(2_100))]), /longer than 4095 bytes/],
      [encodeFiles([file("a"), file("a/b")]), /a\/b is beneath a, which is not a directory/],
      [link("../out"), /leads out of the workspace/],
      [link("d/../../out"), /leads out of the workspace/],
      [link("/etc"), /leads out of the workspace/],
      [link(`${init.workspace}/../out`), /leads out of the workspace/],
      [tarOf("mkfifo p"), /neither a file nor a directory nor a link/],
      [Buffer.from("no tar"), /not a tar archive/],
      [Buffer.alloc(0), /not a tar archive/],
      [encodeFiles([file("a", "x".repeat(3_000))]).subarray(0, 2_000), /ends in the middle/],
    ];
    for (const [archive, message] of bad) {
      const fail = await unpack(init, archive, [4, check]).fail();
      expect(fail).toEqual({
        code: "bad-archive",
        message: expect.stringMatching(message),
        errno: undefined,
      });
    }
    expect(readdirSync(init.workspace)).toEqual([]);
    expect((await unpack(init, link(`${init.workspace}/d`)).done()).number(9)).toBe(1);
  });

  test("unpack follows no link that leads out of the workspace, even one it made itself", async () => {
    const init = await Init.start();
    const outside = mkdtempSync(join(tmpdir(), "init-outside-"));
    dirs.push(outside);
    writeFileSync(join(outside, "f"), "theirs");
    symlinkSync(outside, inside(init, "out"));
    symlinkSync(join(outside, "f"), inside(init, "f"));
    for (const path of ["out/new", "f"]) {
      const stopped = unpack(init, encodeFiles([file(path), file("after")]));
      expect((await stopped.done()).number(9)).toBe(0);
      expect(refusals(stopped)).toEqual([`${path}: outside-workspace`]);
    }
    const all = unpack(init, encodeFiles([file("out/new"), file("f"), file("after")]), [4, each]);
    expect((await all.done()).number(9)).toBe(1);
    expect(refusals(all)).toEqual(["out/new: outside-workspace", "f: outside-workspace"]);
    expect(readdirSync(outside)).toEqual(["f"]);
    expect(readFileSync(join(outside, "f"), "utf8")).toBe("theirs");
  });

  test("unpack of single files keeps a file's mode and its content until the new one is whole", async () => {
    const init = await Init.start();
    writeFileSync(inside(init, "kept"), "old", { mode: 0o751 });
    linkSync(inside(init, "kept"), inside(init, "other"));
    symlinkSync("kept", inside(init, "link"));
    mkdirSync(inside(init, "dir"));
    const long = `${"long-name-".repeat(20)}/${"z".repeat(250)}`;
    const channel = unpack(
      init,
      encodeFiles([file("kept", "new"), file("link", "newer"), file("dir"), file(long, "", 0o600)]),
      [4, each],
    );
    expect((await channel.done()).number(9)).toBe(3);
    expect(refusals(channel)).toEqual(["dir: is-a-directory"]);
    expect(readFileSync(inside(init, "kept"), "utf8")).toBe("newer");
    expect(statSync(inside(init, "kept")).mode & 0o777).toBe(0o751);
    expect(readFileSync(inside(init, "other"), "utf8")).toBe("old");
    expect(lstatSync(inside(init, "link")).isSymbolicLink()).toBe(true);
    expect(statSync(inside(init, long)).mode & 0o777).toBe(0o600);
    const linked = unpack(init, tarOf("ln -s x l"), [4, each]);
    expect(await linked.failCode()).toBe("bad-archive");
  });

  test("unpack stays within the room it is given, by bytes and by entries", async () => {
    const init = await Init.start();
    writeFileSync(inside(init, "old"), "x".repeat(900));
    const archive = encodeFiles([
      file("old", "y".repeat(1_000)),
      file("b", "z".repeat(300)),
      file("c", "z".repeat(90)),
    ]);
    const channel = unpack(init, archive, [4, each], [13, 200]);
    expect((await channel.done()).number(9)).toBe(2);
    expect(refusals(channel)).toEqual(["b: quota"]);
    expect(readdirSync(init.workspace).sort()).toEqual(["c", "old"]);
    const few = unpack(init, encodeFiles([file("d"), file("e"), file("old", "")]), [12, 1]);
    expect((await few.done()).number(9)).toBe(1);
    expect(refusals(few)).toEqual(["e: quota"]);
  });

  test("unpack that is cut off or killed leaves no half of a file", async () => {
    const init = await Init.start();
    const archive = encodeFiles([file("a", "a".repeat(1_000)), file("b", "b".repeat(500_000))]);
    for (const flags of [0, each]) {
      const cut = unpack(init, archive.subarray(0, 100_000), [4, flags]);
      expect(await cut.failCode()).toBe("bad-archive");
      const killed = init.file([1, Op.unpack], [4, flags]);
      killed.stdin(archive.subarray(0, 100_000));
      await init.until(() => readdirSync(init.workspace).length > 1, "the second file");
      killed.kill(1_000);
      expect(await killed.failCode()).toBe("interrupted");
      expect(readdirSync(init.workspace)).toEqual(["a"]);
      rmSync(inside(init, "a"));
    }
  });

  test("unpack refuses more entries than its bound", async () => {
    const init = await Init.start({ binary: "release" });
    const many = encodeFiles(Array.from({ length: 100_001 }, (_, n) => file(`f${n}`, "")));
    const fail = await unpack(init, gzipSync(many, { level: 1 }), [4, check]).fail(60_000);
    expect(fail.message).toMatch(/more than 100000 entries/);
  });
});

describe("pack", () => {
  interface Packed {
    readonly path: string;
    readonly type: string;
    readonly code: string | undefined;
    readonly text: string | undefined;
  }

  const packed = (channel: Channel): Packed[] =>
    [...readPackedEntries(channel.data)]
      .map(({ records, bytes }) => ({
        path: records.text(1) ?? "",
        type: records.text(2) ?? "",
        code: records.text(10),
        text: bytes?.toString(),
      }))
      .sort((a, b) => (a.path < b.path ? -1 : 1));
  const names = (...paths: string[]): Pairs => paths.map((path) => [17, path]);

  test("pack gives what is named, and what is in it if asked", async () => {
    const init = await Init.start();
    mkdirSync(inside(init, "d/e"), { recursive: true });
    writeFileSync(inside(init, "d/f"), "hello");
    writeFileSync(inside(init, "d/e/empty"), "");
    symlinkSync("d/f", inside(init, "link"));
    symlinkSync("/etc", inside(init, "out"));
    const all = init.file([1, Op.pack], [4, recursive], ...names("", "missing"));
    expect((await all.done()).number(9)).toBe(7);
    expect(packed(all)).toMatchObject([
      { path: "d", type: "d", text: undefined },
      { path: "d/e", type: "d" },
      { path: "d/e/empty", type: "f", text: "" },
      { path: "d/f", type: "f", text: "hello" },
      { path: "link", type: "l", text: undefined },
      { path: "missing", code: "not-found" },
      { path: "out", type: "l" },
    ]);
    const followed = init.file([1, Op.pack], [4, follow], ...names("d", "link", "out", "out/passwd", "../x"));
    await followed.done();
    expect(packed(followed)).toMatchObject([
      { path: "../x", code: "invalid-path" },
      { path: "d", type: "d" },
      { path: "link", type: "f", text: "hello" },
      { path: "out", code: "outside-workspace" },
      { path: "out/passwd", code: "outside-workspace" },
    ]);
  });

  test("pack sends no more content and entries than it may, at the pace of its credit", async () => {
    const init = await Init.start();
    const large = Buffer.alloc(700_000, "0123456789");
    writeFileSync(inside(init, "large"), large);
    for (const name of ["a", "b", "c"]) writeFileSync(inside(init, name), name.repeat(1_000));
    const channel = init.file([1, Op.pack], [6, 701_500], [10, 1_000], ...names("a", "large", "b"));
    await init.until(() => channel.data.length === 1_000, "a thousand bytes");
    channel.credit(2_000_000);
    const done = await channel.done();
    expect([done.number(9), done.number(2), done.number(10)]).toEqual([3, 701_000, 1]);
    expect(packed(channel)).toMatchObject([
      { path: "a", text: "a".repeat(1_000) },
      { path: "b", code: "too-large" },
      { path: "large", text: large.toString() },
    ]);
    const few = init.file([1, Op.pack], [4, recursive], [12, 2], ...names(""));
    expect((await few.done()).number(10)).toBe(1);
    expect(packed(few)).toHaveLength(2);
    const unknown = init.file([1, Op.pack], [12, 2], ...names("none/x", "../x", "nothing/x", "a"));
    expect((await unknown.done()).number(10)).toBe(1);
    expect(packed(unknown)).toHaveLength(2);
  });

  test("pack of a FIFO does not wait for a writer", async () => {
    const init = await Init.start();
    spawnSync("mkfifo", [inside(init, "fifo")]);
    const channel = init.file([1, Op.pack], ...names("fifo"));
    await channel.done();
    expect(packed(channel)).toMatchObject([{ path: "fifo", type: "o", text: undefined }]);
  });
});

describe("random archives", () => {
  test.each([1, 2])(
    "random archives make init's readers touch no other memory, and are refused with a reason (seed %i)",
    async (seed) => {
      build();
      const dir = mkdtempSync(join(tmpdir(), "init-archives-"));
      dirs.push(dir);
      const paths = ["gnu", "pax", "ustar"].flatMap((format) => {
        const archive = tarOf(tree(format === "ustar" ? 90 : 180), `--format=${format}`);
        return [archive, gzipSync(archive), gzipSync(archive, { level: 1 })].map((bytes, n) => {
          const path = join(dir, `${format}-${n}`);
          writeFileSync(path, bytes);
          return path;
        });
      });
      const { stdout } = await promisify(execFile)(fuzzArchiveBinary, [String(seed), "300", ...paths]);
      const [entries = 0, refused = 0] = [...stdout.matchAll(/\d+/g)].map(Number);
      expect(entries).toBeGreaterThan(3_000);
      expect(refused).toBeGreaterThan(500);
      expect(existsSync(dir)).toBe(true);
    },
  );
});
