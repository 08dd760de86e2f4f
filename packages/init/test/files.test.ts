import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Op, paths, read, readText, sha256, write } from "./support/files.ts";
import { Init } from "./support/init-process.ts";
import type { Value } from "./support/wire.ts";

type Pairs = [number, Value | undefined][];

const inside = (init: Init, path: string) => join(init.workspace, path);

describe("read", () => {
  test("read sends the whole file, its size, mode and time", async () => {
    const init = await Init.start();
    writeFileSync(inside(init, "a.txt"), "hello\0world", { mode: 0o640 });
    utimesSync(inside(init, "a.txt"), 1_700_000_000, 1_700_000_000.5);
    const channel = read(init, "a.txt", [4, 1]);
    const done = await channel.done();
    expect(channel.data.toString()).toBe("hello\0world");
    expect([done.number(1), done.number(2), done.number(3), done.number(4)]).toEqual([
      11, 11, 0o640, 1_700_000_000_500,
    ]);
    expect(done.raw(5)).toEqual(sha256("hello\0world"));
  });

  test("read sends a range, and the hash is that of the range", async () => {
    const init = await Init.start();
    writeFileSync(inside(init, "a"), "0123456789");
    const cases: [number, number | undefined, string][] = [
      [0, 4, "0123"],
      [3, 4, "3456"],
      [8, 100, "89"],
      [4, undefined, "456789"],
      [10, 5, ""],
      [9_000_000_000, 5, ""],
      [2, 0, ""],
    ];
    for (const [offset, length, expected] of cases) {
      const channel = read(init, "a", [5, offset], [6, length], [4, 1]);
      const done = await channel.done();
      expect(channel.data.toString()).toBe(expected);
      expect([done.number(1), done.number(2)]).toEqual([10, expected.length]);
      expect(done.raw(5)).toEqual(sha256(expected));
    }
  });

  test("read uses the channel's credit, and an empty file needs none", async () => {
    const init = await Init.start();
    writeFileSync(inside(init, "big"), Buffer.alloc(500_000, "x"));
    writeFileSync(inside(init, "empty"), "");
    const channel = read(init, "big", [10, 1000]);
    await init.until(() => channel.data.length === 1000, "a thousand bytes");
    await init.sh("sleep 0.05").exit();
    expect(channel.data.length).toBe(1000);
    channel.credit(499_000);
    expect((await channel.done()).number(2)).toBe(500_000);
    expect((await read(init, "empty", [10, 0]).done()).number(2)).toBe(0);
  });

  test("read of ten megabytes arrives whole", async () => {
    const init = await Init.start({ binary: "release" });
    const bytes = Buffer.alloc(10_000_000);
    for (let i = 0; i < bytes.length; i += 4) bytes.writeUInt32LE(i, i);
    writeFileSync(inside(init, "big"), bytes);
    const channel = read(init, "big", [4, 1]);
    expect((await channel.done(60_000)).raw(5)).toEqual(sha256(bytes));
    expect(sha256(channel.data)).toEqual(sha256(bytes));
  });

  test("read of a sparse terabyte gives the range asked for, and can be killed when all was asked for", async () => {
    const init = await Init.start();
    writeFileSync(inside(init, "sparse"), "");
    truncateSync(inside(init, "sparse"), 2 ** 40);
    const end = read(init, "sparse", [5, 2 ** 40 - 3]);
    expect((await end.done()).number(2)).toBe(3);
    const all = read(init, "sparse", [10, 100_000]);
    await init.until(() => all.data.length > 0, "its beginning");
    all.kill();
    expect(await all.failCode()).toBe("interrupted");
    expect(await init.ping()).toBe("ping");
  });

  test("read refuses what is no regular file, without waiting on it", async () => {
    const init = await Init.start();
    mkdirSync(inside(init, "dir"));
    await init
      .sh("mkfifo fifo; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"")
      .exit();
    const codes = [];
    for (const path of ["missing", "dir", "dir/", "fifo", "sock", "", "missing/file", "fifo/x"]) {
      codes.push(await read(init, path).failCode());
    }
    expect(codes).toEqual([
      "not-found",
      "is-a-directory",
      "is-a-directory",
      "not-a-file",
      "not-a-file",
      "invalid-path",
      "not-found",
      "not-a-directory",
    ]);
  });

  test("a file that is no directory does not answer to a slash at its end", async () => {
    const init = await Init.start();
    writeFileSync(inside(init, "a"), "x");
    expect(await read(init, "a/").failCode()).toBe("not-a-directory");
  });
});

describe("write", () => {
  test("write makes a file, then replaces it, and reports which", async () => {
    const init = await Init.start();
    const first = await write(init, "a.txt", "one").done();
    expect([first.number(1), first.number(6), first.raw(5)]).toEqual([3, 1, sha256("one")]);
    const second = await write(init, "a.txt", "two!").done();
    expect([second.number(1), second.number(6), second.raw(5)]).toEqual([4, 0, sha256("two!")]);
    expect(readFileSync(inside(init, "a.txt"), "utf8")).toBe("two!");
    expect(readdirSync(init.workspace)).toEqual(["a.txt"]);
  });

  test("write gives a new file 0644, keeps an old one's mode, and takes the mode in the request", async () => {
    const init = await Init.start();
    const mode = (path: string) => statSync(inside(init, path)).mode & 0o7777;
    await write(init, "new", "x").done();
    writeFileSync(inside(init, "old"), "x");
    chmodSync(inside(init, "old"), 0o751);
    await write(init, "old", "y").done();
    await write(init, "given", "x", [7, 0o700]).done();
    await write(init, "old2", "x", [7, 0o666]).done();
    expect([mode("new"), mode("old"), mode("given"), mode("old2")]).toEqual([0o644, 0o751, 0o700, 0o666]);
  });

  test("write makes parents only when asked", async () => {
    const init = await Init.start();
    expect(await write(init, "a/b/c.txt", "x").failCode()).toBe("not-found");
    expect(existsSync(inside(init, "a"))).toBe(false);
    await write(init, "a/b/c.txt", "x", [4, 2]).done();
    expect(await readText(init, "a/b/c.txt")).toBe("x");
  });

  test("write appends on request", async () => {
    const init = await Init.start();
    expect((await write(init, "log", "one ", [4, 1]).done()).number(6)).toBe(1);
    const done = await write(init, "log", "two", [4, 1]).done();
    expect([done.number(1), done.number(6), done.raw(5)]).toEqual([7, 0, sha256("two")]);
    expect(await readText(init, "log")).toBe("one two");
    expect(statSync(inside(init, "log")).mode & 0o777).toBe(0o644);
  });

  test("write that must not replace anything does not, even when the file appears meanwhile", async () => {
    const init = await Init.start();
    await write(init, "a", "1", [4, 4]).done();
    expect(await write(init, "a", "2", [4, 4]).failCode()).toBe("exists");
    const slow = init.file([1, Op.write], [2, "b"], [8, 1], [4, 4]);
    await init.until(
      () => readdirSync(init.workspace).some((name) => name.startsWith(".berth-")),
      "its temporary file",
    );
    writeFileSync(inside(init, "b"), "tenant");
    slow.stdin("w");
    slow.stdinEof();
    expect(await slow.failCode()).toBe("exists");
    expect(await readText(init, "b")).toBe("tenant");
    expect(readdirSync(init.workspace).sort()).toEqual(["a", "b"]);
  });

  test("write with a sha256 happens only when the content there has it", async () => {
    const init = await Init.start();
    await write(init, "a", "old").done();
    expect(await write(init, "a", "new", [9, sha256("other")]).failCode()).toBe("mismatch");
    expect(await write(init, "missing", "new", [9, sha256("")]).failCode()).toBe("mismatch");
    expect(await write(init, "a", "new", [9, sha256("other")], [4, 1]).failCode()).toBe("mismatch");
    expect(await readText(init, "a")).toBe("old");
    await write(init, "a", "new", [9, sha256("old")]).done();
    await write(init, "a", "er", [9, sha256("new")], [4, 1]).done();
    expect(await readText(init, "a")).toBe("newer");
  });

  test("a write past its budget is refused before init takes a byte", async () => {
    const init = await Init.start();
    expect(await init.file([1, Op.write], [2, "a"], [8, 101], [13, 100]).failCode()).toBe("quota");
    await write(init, "a", "x".repeat(100), [13, 100]).done();
    // Replacing gives the old bytes back, appending does not.
    await write(init, "a", "y".repeat(150), [13, 50]).done();
    expect(await init.file([1, Op.write], [2, "a"], [8, 51], [13, 50], [4, 1]).failCode()).toBe("quota");
    await write(init, "a", "z", [13, 0]).done();
    expect(await readText(init, "a")).toBe("z");
  });

  /** What is asked for, and the entries and directories that it makes. */
  const onTheWay: Record<string, { ask: (path: string) => Pairs; makes: [number, number] }> = {
    write: {
      ask: (path) => [
        [1, Op.write],
        [2, path],
        [8, 0],
      ],
      makes: [4, 3],
    },
    mkdir: {
      ask: (path) => [
        [1, Op.mkdir],
        [2, path],
      ],
      makes: [4, 4],
    },
    // What is moved is there already.
    move: {
      ask: (path) => [
        [1, Op.move],
        [2, "from"],
        [3, path],
      ],
      makes: [3, 3],
    },
  };

  test.each(Object.keys(onTheWay))(
    "a %s counts the directories on its way, as entries and as bytes",
    async (what) => {
      const init = await Init.start();
      await write(init, "from", "").done();
      const { ask = () => [], makes: [entries, directories] = [0, 0] } = onTheWay[what] ?? {};
      const run = (path: string, items: number, budget: number) => {
        const channel = init.file(...ask(path), [4, 2], [12, items], [13, budget]);
        channel.stdinEof();
        return channel;
      };
      expect(await run("few/a/b/c", entries - 1, 1 << 20).failCode()).toBe("quota");
      expect(await run("small/a/b/c", 99, directories * 4096 - 1).failCode()).toBe("quota");
      const done = await run("enough/a/b/c", entries, directories * 4096).done();
      expect([done.number(14), done.number(23)]).toEqual([entries, directories]);
      expect(existsSync(inside(init, "enough/a/b/c"))).toBe(true);
    },
  );

  test("write of fewer or more bytes than announced is short, and leaves what was there", async () => {
    const init = await Init.start();
    await write(init, "a", "old").done();
    expect(await write(init, "a", "new", [8, 5]).failCode()).toBe("short");
    expect(await write(init, "a", "new", [8, 2]).failCode()).toBe("short");
    expect(await readText(init, "a")).toBe("old");
    expect(readdirSync(init.workspace)).toEqual(["a"]);
  });

  test("write of nothing makes an empty file", async () => {
    const init = await Init.start();
    const done = await write(init, "empty", "").done();
    expect([done.number(1), done.number(6)]).toEqual([0, 1]);
    expect(statSync(inside(init, "empty")).size).toBe(0);
  });

  test("write of megabytes goes through the window", async () => {
    const init = await Init.start({ binary: "release" });
    const bytes = Buffer.alloc(5_000_000, "0123456789abcdef");
    const channel = init.file([1, Op.write], [2, "big"], [8, bytes.length]);
    for (let at = 0; at < bytes.length; at += 65_536) {
      await init.until(() => 262_144 + channel.stdinCredit - at >= 65_536, "the window");
      channel.stdin(bytes.subarray(at, at + 65_536));
    }
    channel.stdinEof();
    expect((await channel.done()).raw(5)).toEqual(sha256(bytes));
    expect(sha256(readFileSync(inside(init, "big")))).toEqual(sha256(bytes));
  });

  test("write that is killed leaves neither file nor temporary file", async () => {
    const init = await Init.start();
    const channel = init.file([1, Op.write], [2, "a"], [8, 10]);
    channel.stdin("12345");
    await init.until(() => readdirSync(init.workspace).length === 1, "the temporary file");
    channel.kill(1000);
    expect(await channel.failCode()).toBe("interrupted");
    expect(readdirSync(init.workspace)).toEqual([]);
  });

  test("write goes through a symlink to its target, and makes the target of one that dangles inside", async () => {
    const init = await Init.start();
    mkdirSync(inside(init, "dir"));
    writeFileSync(inside(init, "dir/real"), "old");
    symlinkSync("dir/real", inside(init, "link"));
    symlinkSync("dir/new", inside(init, "dangling"));
    await write(init, "link", "new").done();
    await write(init, "dangling", "made").done();
    expect(lstatSync(inside(init, "link")).isSymbolicLink()).toBe(true);
    expect(readFileSync(inside(init, "dir/real"), "utf8")).toBe("new");
    expect(readFileSync(inside(init, "dir/new"), "utf8")).toBe("made");
  });

  test("write replaces one name of a hard link and leaves the other alone", async () => {
    const init = await Init.start();
    writeFileSync(inside(init, "a"), "shared");
    linkSync(inside(init, "a"), inside(init, "b"));
    await write(init, "a", "own").done();
    expect([await readText(init, "a"), await readText(init, "b")]).toEqual(["own", "shared"]);
  });

  test("write to a directory, a FIFO or below a file is refused with the reason", async () => {
    const init = await Init.start();
    mkdirSync(inside(init, "dir"));
    writeFileSync(inside(init, "file"), "");
    await init.sh("mkfifo fifo").exit();
    const codes = [];
    for (const [path, flags] of [
      ["dir", 0],
      ["new/", 0],
      ["fifo", 0],
      ["fifo", 1],
      ["file/x", 2],
      ["", 0],
    ] as const) {
      codes.push(await init.file([1, Op.write], [2, path], [8, 0], [4, flags]).failCode());
    }
    expect(codes).toEqual([
      "is-a-directory",
      "is-a-directory",
      "not-a-file",
      "not-a-file",
      "not-a-directory",
      "invalid-path",
    ]);
  });

  test("a write past the file size limit ends as no-space, and leaves nothing", async () => {
    const init = await Init.start({ wrapper: ["prlimit", "--fsize=1000"] });
    expect(await write(init, "a", "x".repeat(5000)).failCode()).toBe("no-space");
    expect(readdirSync(init.workspace)).toEqual([]);
    expect((await write(init, "a", "x".repeat(900)).done()).number(1)).toBe(900);
  });
});

describe("stat", () => {
  test("stat reports type, size, mode and time, of the target or of the link itself", async () => {
    const init = await Init.start();
    writeFileSync(inside(init, "file"), "12345", { mode: 0o600 });
    mkdirSync(inside(init, "dir"), { mode: 0o750 });
    symlinkSync("file", inside(init, "link"));
    symlinkSync("nowhere", inside(init, "dangling"));
    await init.sh("mkfifo fifo").exit();
    const stat = async (path: string, flags = 0) => {
      const done = await init.file([1, Op.stat], [2, path], [4, flags]).done();
      return [done.text(7), done.number(3), done.text(8)];
    };
    expect(await stat("file")).toEqual(["f", 0o600, undefined]);
    expect(await stat("dir")).toEqual(["d", 0o750, undefined]);
    expect(await stat("dir/")).toEqual(["d", 0o750, undefined]);
    expect(await stat("")).toEqual(["d", 0o700, undefined]);
    expect(await stat("link")).toEqual(["f", 0o600, undefined]);
    expect(await stat("link", 2)).toEqual(["l", 0o777, "file"]);
    expect(await stat("dangling", 2)).toEqual(["l", 0o777, "nowhere"]);
    expect((await stat("fifo"))[0]).toBe("o");
    expect(await init.file([1, Op.stat], [2, "dangling"]).failCode()).toBe("not-found");
    expect(await init.file([1, Op.stat], [2, "file/"]).failCode()).toBe("not-a-directory");
  });

  test("stat hashes a file when asked", async () => {
    const init = await Init.start();
    writeFileSync(inside(init, "file"), "12345");
    const done = await init.file([1, Op.stat], [2, "file"], [4, 1]).done();
    expect(done.raw(5)).toEqual(sha256("12345"));
    expect(done.number(1)).toBe(5);
    expect((await init.file([1, Op.stat], [2, ""], [4, 1]).done()).raw(5)).toBeUndefined();
  });

  test("stat reports no number beyond JavaScript's exact integers", async () => {
    const init = await Init.start();
    await init.sh("touch far; touch -d '1960-01-01' early; touch -d @9999999999999 late").exit();
    expect((await init.file([1, Op.stat], [2, "early"]).done()).number(4)).toBe(0);
    expect((await init.file([1, Op.stat], [2, "late"]).done()).number(4)).toBeLessThanOrEqual(
      Number.MAX_SAFE_INTEGER,
    );
  });
});

describe("move, mkdir and remove", () => {
  test("move renames files and directories, and overwrites only on request", async () => {
    const init = await Init.start();
    const move = (from: string, to: string, flags = 0) =>
      init.file([1, Op.move], [2, from], [3, to], [4, flags]);
    writeFileSync(inside(init, "a"), "A");
    writeFileSync(inside(init, "b"), "B");
    mkdirSync(inside(init, "dir/sub"), { recursive: true });
    mkdirSync(inside(init, "full/x"), { recursive: true });
    expect(await move("a", "b").failCode()).toBe("exists");
    await move("a", "b", 1).done();
    expect(await readText(init, "b")).toBe("A");
    await move("dir", "renamed").done();
    expect(readdirSync(inside(init, "renamed"))).toEqual(["sub"]);
    expect(await move("b", "new/deep/b").failCode()).toBe("not-found");
    await move("b", "new/deep/b", 2).done();
    expect(await readText(init, "new/deep/b")).toBe("A");
    expect(await move("missing", "x").failCode()).toBe("not-found");
    expect(await move("renamed", "full", 1).failCode()).toBe("not-empty");
    expect(await move("renamed", "full").failCode()).toBe("exists");
    expect(await move("renamed", "renamed/sub/inner").failCode()).toBe("invalid-path");
    expect(await move("", "x").failCode()).toBe("invalid-path");
    expect(await move("renamed", "").failCode()).toBe("invalid-path");
    expect(await move("new/deep/b", "renamed", 1).failCode()).toBe("is-a-directory");
  });

  test("move takes a symlink itself, not what it points to", async () => {
    const init = await Init.start();
    writeFileSync(inside(init, "target"), "T");
    symlinkSync("target", inside(init, "link"));
    symlinkSync("/etc/passwd", inside(init, "out"));
    await init.file([1, Op.move], [2, "link"], [3, "moved"]).done();
    await init.file([1, Op.move], [2, "out"], [3, "still-out"]).done();
    expect(lstatSync(inside(init, "moved")).isSymbolicLink()).toBe(true);
    expect(lstatSync(inside(init, "still-out")).isSymbolicLink()).toBe(true);
    await init.file([1, Op.move], [2, "target"], [3, "still-out"], [4, 1]).done();
    expect(lstatSync(inside(init, "still-out")).isFile()).toBe(true);
  });

  test("mkdir makes one directory or all on the way, and reports whether it did", async () => {
    const init = await Init.start();
    const mkdir = (path: string, flags = 0, mode?: number) =>
      init.file([1, Op.mkdir], [2, path], [4, flags], [7, mode]);
    expect((await mkdir("a").done()).number(6)).toBe(1);
    expect(await mkdir("a").failCode()).toBe("exists");
    expect((await mkdir("a", 2).done()).number(6)).toBe(0);
    expect(await mkdir("b/c").failCode()).toBe("not-found");
    expect((await mkdir("b/c/d", 2).done()).number(6)).toBe(1);
    expect((await mkdir("m", 0, 0o777).done()).number(6)).toBe(1);
    expect(statSync(inside(init, "m")).mode & 0o777).toBe(0o777);
    expect(statSync(inside(init, "a")).mode & 0o777).toBe(0o755);
    writeFileSync(inside(init, "file"), "");
    expect(await mkdir("file", 2).failCode()).toBe("exists");
    expect(await mkdir("file/x", 2).failCode()).toBe("not-a-directory");
    expect((await mkdir("", 2).done()).number(6)).toBe(0);
    expect(await mkdir("").failCode()).toBe("exists");
  });

  test("remove takes files, empty directories, and trees on request", async () => {
    const init = await Init.start();
    const remove = (path: string, flags = 0) => init.file([1, Op.remove], [2, path], [4, flags]);
    mkdirSync(inside(init, "dir/a/b"), { recursive: true });
    writeFileSync(inside(init, "dir/a/f"), "");
    writeFileSync(inside(init, "dir/g"), "");
    mkdirSync(inside(init, "empty"));
    writeFileSync(inside(init, "file"), "");
    expect((await remove("file").done()).number(9)).toBe(1);
    expect((await remove("empty").done()).number(9)).toBe(1);
    expect(await remove("dir").failCode()).toBe("not-empty");
    expect((await remove("dir", 1).done()).number(9)).toBe(5);
    expect(await remove("missing").failCode()).toBe("not-found");
    expect((await remove("missing", 2).done()).number(9)).toBe(0);
    expect((await remove("missing/too", 3).done()).number(9)).toBe(0);
    expect(await remove("", 1).failCode()).toBe("invalid-path");
    expect(await remove(".", 1).failCode()).toBe("invalid-path");
    expect(readdirSync(init.workspace)).toEqual([]);
  });

  test("remove takes a symlink and never what it points to", async () => {
    const init = await Init.start();
    mkdirSync(inside(init, "keep"));
    writeFileSync(inside(init, "keep/precious"), "");
    mkdirSync(inside(init, "dir"));
    symlinkSync("../keep", inside(init, "dir/link"));
    symlinkSync("keep", inside(init, "top"));
    await init.file([1, Op.remove], [2, "dir"], [4, 1]).done();
    await init.file([1, Op.remove], [2, "top"], [4, 1]).done();
    expect(readdirSync(inside(init, "keep"))).toEqual(["precious"]);
    expect(readdirSync(init.workspace)).toEqual(["keep"]);
  });
});

describe("operations under way", () => {
  test("file operations hold up neither each other nor commands", async () => {
    const init = await Init.start();
    const waiting = Array.from({ length: 20 }, (_, n) => init.file([1, Op.write], [2, `f${n}`], [8, 1]));
    expect((await init.sh("exit 3").exit()).value).toBe(3);
    expect(await write(init, "other", "x").done()).toBeDefined();
    for (const channel of waiting) {
      channel.stdin("!");
      channel.stdinEof();
    }
    for (const channel of waiting) await channel.done();
    const list = init.file([1, Op.list], [2, ""]);
    await list.done();
    expect(paths(list).length).toBe(21);
  });

  test("a thousand small files come and go, and init holds no more descriptors than before", async () => {
    const init = await Init.start({ binary: "release" });
    for (let i = 0; i < 1000; i += 50) {
      await Promise.all(
        Array.from({ length: 50 }, (_, n) => write(init, `d/${i + n}`, `${i + n}`, [4, 2]).done()),
      );
    }
    for (let i = 0; i < 1000; i += 250) expect(await readText(init, `d/${i}`)).toBe(String(i));
    expect((await init.file([1, Op.remove], [2, "d"], [4, 1]).done()).number(9)).toBe(1001);
    const fds = (pid: string) => readdirSync(`/proc/${pid}/fd`).length;
    const children = readFileSync(`/proc/${init.pid}/task/${init.pid}/children`, "utf8").trim().split(" ");
    expect(fds(String(init.pid))).toBeLessThan(24);
    expect(Math.max(...children.map(fds))).toBeLessThan(10);
  });

  test("a keeper killed in the middle of one makes it interrupted, and nothing else", async () => {
    const init = await Init.start();
    const channel = init.file([1, Op.write], [2, "a"], [8, 10]);
    await init.until(() => readdirSync(init.workspace).length === 1, "the temporary file");
    const children = readFileSync(`/proc/${init.pid}/task/${init.pid}/children`, "utf8").trim().split(" ");
    for (const child of children) process.kill(Number(child), "SIGKILL");
    expect(await channel.failCode()).toBe("interrupted");
    expect(await init.ping()).toBe("ping");
  });
});
