import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Channel } from "./support/channel.ts";
import { listed, Op, paths } from "./support/files.ts";
import { Init, isRoot } from "./support/init-process.ts";
import type { Value } from "./support/wire.ts";

const inside = (init: Init, path: string) => join(init.workspace, path);

function plant(init: Init, files: Record<string, string>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(inside(init, path)), { recursive: true });
    writeFileSync(inside(init, path), content);
  }
}

describe("list", () => {
  const list = (init: Init, path: string, ...more: [number, Value][]) =>
    init.file([1, Op.list], [2, path], ...more);

  test("list names what is in a directory, with types, sizes and targets", async () => {
    const init = await Init.start();
    plant(init, { a: "123", "dir/inner": "x", ".hidden": "" });
    symlinkSync("/etc/passwd", inside(init, "link"));
    await init.sh("mkfifo fifo; chmod 640 a").exit();
    const channel = list(init, "");
    const done = await channel.done();
    expect([done.number(9), done.number(10)]).toEqual([5, 0]);
    expect(listed(channel.items).map(({ path, type, target }) => [path, type, target])).toEqual([
      [".hidden", "f", undefined],
      ["a", "f", undefined],
      ["dir", "d", undefined],
      ["fifo", "o", undefined],
      ["link", "l", "/etc/passwd"],
    ]);
    expect(listed(channel.items)[1]).toMatchObject({ size: 3, mode: 0o640 });
    expect(channel.items[0]?.number(5)).toBeGreaterThan(1_600_000_000_000);
  });

  test("list recurses on request, to the requested depth, and never through a symlink", async () => {
    const init = await Init.start();
    plant(init, { "a/b/c/d": "", "a/x": "" });
    symlinkSync("a", inside(init, "loop"));
    symlinkSync("..", inside(init, "a/up"));
    const all = list(init, "", [4, 1]);
    await all.done();
    expect(paths(all)).toEqual(["a", "a/b", "a/b/c", "a/b/c/d", "a/up", "a/x", "loop"]);
    const two = list(init, "a", [4, 1], [14, 2]);
    await two.done();
    expect(paths(two)).toEqual(["a/b", "a/b/c", "a/up", "a/x"]);
    const through = list(init, "loop/b");
    await through.done();
    expect(paths(through)).toEqual(["loop/b/c"]);
  });

  test("list stops at its bound and reports it; exactly the bound is not too many", async () => {
    const init = await Init.start();
    await init.sh("i=0; while [ $i -lt 100 ]; do : > f$i; i=$((i+1)); done").exit();
    const cut = list(init, "", [12, 99]);
    expect([(await cut.done()).number(10), cut.items.length]).toEqual([1, 99]);
    const whole = list(init, "", [12, 100]);
    expect([(await whole.done()).number(10), whole.items.length]).toEqual([0, 100]);
  });

  test("list of twenty thousand entries streams whole items, and a bound ends it early", async () => {
    const init = await Init.start({ binary: "release" });
    await init.exec(["python3", "-c", "for i in range(20000): open('entry-%d' % i, 'w').close()"]).exit();
    const all = list(init, "", [12, 1_000_000]);
    expect((await all.done(60_000)).number(9)).toBe(20_000);
    expect(new Set(paths(all)).size).toBe(20_000);
    const few = list(init, "", [12, 10]);
    expect([(await few.done()).number(10), few.items.length]).toEqual([1, 10]);
    const unbounded = list(init, "");
    expect([(await unbounded.done()).number(10), unbounded.items.length]).toEqual([1, 10_000]);
  });

  test("list uses credit in whole items", async () => {
    const init = await Init.start();
    await init.sh("for i in 1 2 3 4 5 6 7 8 9; do : > file-number-$i; done").exit();
    const channel = list(init, "", [10, 200]);
    await init.until(() => channel.items.length > 0, "the first items");
    await init.sh("sleep 0.05").exit();
    expect(channel.items.length).toBeLessThan(4);
    channel.credit(65_536);
    expect((await channel.done()).number(9)).toBe(9);
    expect(channel.items.length).toBe(9);
  });

  test("list of what is no directory is refused with that reason", async () => {
    const init = await Init.start();
    plant(init, { file: "" });
    expect(await list(init, "file").failCode()).toBe("not-a-directory");
    expect(await list(init, "missing").failCode()).toBe("not-found");
  });
});

describe("deep trees", () => {
  const depth = 5_000;
  const dig = `import os
for i in range(${depth}):
  os.mkdir('d'); os.chdir('d')
open('bottom','w').write('x'*5000)`;

  test("deep trees of thousands of levels are counted, removed, and listed down to the longest possible path", async () => {
    const init = await Init.start({ binary: "release", wrapper: ["prlimit", "--nofile=256"] });
    expect((await init.exec(["python3", "-c", dig]).exit()).value).toBe(0);
    const usage = await init.file([1, Op.usage], [2, ""]).done(30_000);
    expect([usage.number(14), usage.number(13), usage.number(10)]).toEqual([depth + 1, 5000, 0]);
    const list = init.file([1, Op.list], [2, ""], [4, 1], [12, 1_000_000]);
    const done = await list.done(30_000);
    expect(done.number(10)).toBe(1);
    expect(done.number(9)).toBe(2048);
    const deepest = paths(list).at(-1) as string;
    expect((await init.file([1, Op.stat], [2, deepest]).done()).text(7)).toBe("d");
    expect((await init.file([1, Op.remove], [2, "d"], [4, 1]).done(30_000)).number(9)).toBe(depth + 1);
    expect((await init.sh("ls").exit()).value).toBe(0);
  });
});

describe("glob", () => {
  const tree = {
    "a.ts": "",
    "a.test.ts": "",
    "src/b.ts": "",
    "src/deep/c.ts": "",
    "src/deep/c.js": "",
    "src/.hidden/d.ts": "",
    ".dot.ts": "",
    "docs/read me.md": "",
    "docs/é.md": "",
    "[x].ts": "",
  };
  const glob = async (init: Init, patterns: string[], base = "", flags = 0): Promise<string[]> => {
    const channel = init.file(
      [1, Op.glob],
      [2, base],
      [4, flags],
      ...patterns.map((p): [number, Value] => [11, p]),
    );
    await channel.done();
    return paths(channel);
  };

  test.each<[string, string[]]>([
    ["*.ts", ["[x].ts", "a.test.ts", "a.ts"]],
    ["**/*.ts", ["[x].ts", "a.test.ts", "a.ts", "src/b.ts", "src/deep/c.ts"]],
    ["src/**", ["src/b.ts", "src/deep", "src/deep/c.js", "src/deep/c.ts"]],
    ["src/*", ["src/b.ts", "src/deep"]],
    ["src/*/", ["src/deep"]],
    ["**/deep/**/*.js", ["src/deep/c.js"]],
    ["src/**/c.{ts,js}", ["src/deep/c.js", "src/deep/c.ts"]],
    ["{a,src/b}.ts", ["a.ts", "src/b.ts"]],
    ["{src/{b,deep/c},a}.ts", ["a.ts", "src/b.ts", "src/deep/c.ts"]],
    ["?.ts", ["a.ts"]],
    ["docs/?.md", ["docs/é.md"]],
    ["[a-c].ts", ["a.ts"]],
    ["[!b].ts", ["a.ts"]],
    ["\\[x\\].ts", ["[x].ts"]],
    ["[[]x].ts", ["[x].ts"]],
    [".dot.ts", [".dot.ts"]],
    [".*", [".dot.ts"]],
    ["./a.ts", ["a.ts"]],
    ["docs/read me.md", ["docs/read me.md"]],
    ["nothing/**", []],
    ["*{", []],
  ])("glob %s matches what a shell would match", async (pattern, expected) => {
    const init = await Init.start();
    plant(init, tree);
    expect(await glob(init, [pattern])).toEqual(expected);
  });

  test("glob matches leading dots on request", async () => {
    const init = await Init.start();
    plant(init, tree);
    expect(await glob(init, ["*.ts"], "", 1)).toContain(".dot.ts");
    expect(await glob(init, ["**/d.ts"], "", 1)).toEqual(["src/.hidden/d.ts"]);
  });

  test("glob takes several patterns, counts an entry once, and starts at its base", async () => {
    const init = await Init.start();
    plant(init, tree);
    expect(await glob(init, ["*.ts", "a*", "docs/*.md"])).toEqual([
      "[x].ts",
      "a.test.ts",
      "a.ts",
      "docs/read me.md",
      "docs/é.md",
    ]);
    expect(await glob(init, ["**/*.ts"], "src")).toEqual(["src/b.ts", "src/deep/c.ts"]);
  });

  test("glob refuses what is no pattern", async () => {
    const init = await Init.start();
    for (const pattern of ["", "/etc/*", "../*", "a/../b", `{${"a,".repeat(600)}b}`, "{a,b}".repeat(12)]) {
      expect(await init.file([1, Op.glob], [2, ""], [11, pattern]).failCode()).toBe("bad-pattern");
    }
  });

  test("glob with many stars takes no exponential time", async () => {
    const init = await Init.start();
    plant(init, { ["a".repeat(200)]: "" });
    expect(await glob(init, [`${"*a".repeat(60)}*b`])).toEqual([]);
    expect(await glob(init, [`${"**/".repeat(40)}x`])).toEqual([]);
  });

  test("glob stops at its bound", async () => {
    const init = await Init.start();
    plant(init, tree);
    const channel = init.file([1, Op.glob], [2, ""], [11, "**/*.ts"], [12, 2]);
    expect([(await channel.done()).number(10), channel.items.length]).toEqual([1, 2]);
  });
});

describe("grep", () => {
  const grep = (init: Init, pattern: string, ...more: [number, Value][]) =>
    init.file([1, Op.grep], [11, pattern], ...more);
  const hits = (channel: Channel) =>
    channel.items.map((item) => `${item.text(1)}:${item.number(7)}:${item.text(8)}`).sort();

  test("grep finds a fixed string with file, line number and text", async () => {
    const init = await Init.start();
    plant(init, { "a.txt": "one\ntwo needle\nthree\nneedle", "d/b.txt": "no\n(needle)\n", c: "nothing" });
    const channel = grep(init, "needle", [2, ""]);
    const done = await channel.done();
    expect(hits(channel)).toEqual(["a.txt:2:two needle", "a.txt:4:needle", "d/b.txt:2:(needle)"]);
    expect([done.number(9), done.number(10), done.number(11), done.number(12)]).toEqual([3, 0, 3, 0]);
  });

  test("grep takes a fixed string as it is, and a regular expression as POSIX extended", async () => {
    const init = await Init.start();
    plant(init, { f: "a.b\naxb\nA.B\n" });
    const find = async (pattern: string, flags: number) => {
      const channel = grep(init, pattern, [2, ""], [4, flags]);
      await channel.done();
      return channel.items.map((item) => item.number(7));
    };
    expect(await find("a.b", 0)).toEqual([1]);
    expect(await find("a.b", 2)).toEqual([1, 3]);
    expect(await find("a.b", 1)).toEqual([1, 2]);
    expect(await find("^a(.|x)b$", 3)).toEqual([1, 2, 3]);
    expect(await find("", 0)).toEqual([1, 2, 3]);
  });

  test("grep reports what is wrong with a pattern", async () => {
    const init = await Init.start();
    const fail = await grep(init, "(", [2, ""], [4, 1]).fail();
    expect(fail.code).toBe("bad-pattern");
    expect(fail.message.length).toBeGreaterThan(5);
    expect(await grep(init, "x", [2, ""], [16, "../*"]).failCode()).toBe("bad-pattern");
  });

  test("grep looks only into files that are included, by name or by path", async () => {
    const init = await Init.start();
    plant(init, { "a.ts": "x", "a.js": "x", "src/b.ts": "x", "src/.c.ts": "x", "lib/d.ts": "x" });
    const find = async (...includes: string[]) => {
      const channel = grep(init, "x", [2, ""], ...includes.map((include): [number, Value] => [16, include]));
      await channel.done();
      return channel.items.map((item) => item.text(1)).sort();
    };
    expect(await find("*.ts")).toEqual(["a.ts", "lib/d.ts", "src/.c.ts", "src/b.ts"]);
    expect(await find("src/*.ts")).toEqual(["src/.c.ts", "src/b.ts"]);
    expect(await find("*.js", "lib/**")).toEqual(["a.js", "lib/d.ts"]);
  });

  test("grep skips binary files, links, FIFOs and unreadable files, and counts the binary ones", async () => {
    const init = await Init.start();
    plant(init, { text: "needle", binary: "needle\0" });
    symlinkSync("text", inside(init, "link"));
    symlinkSync("/etc/passwd", inside(init, "out"));
    await init.sh("mkfifo fifo; head -c 100000 /dev/zero > zeros").exit();
    writeFileSync(inside(init, "sparse"), "");
    truncateSync(inside(init, "sparse"), 2 ** 40);
    const channel = grep(init, "needle", [2, ""]);
    const done = await channel.done();
    expect(hits(channel)).toEqual(["text:1:needle"]);
    expect([done.number(11), done.number(12)]).toEqual([1, 3]);
  });

  test("grep cuts long lines between characters, and marks them as cut", async () => {
    const init = await Init.start();
    plant(init, { f: `needle ${"é".repeat(100)}` });
    const channel = grep(init, "needle", [2, ""], [15, 10]);
    await channel.done();
    expect(channel.items.map((item) => [item.text(8), item.number(9)])).toEqual([["needle é", 1]]);
  });

  test("grep holds its line numbers through lines of megabytes, and sees their beginnings", async () => {
    const init = await Init.start();
    const long = "y".repeat(3_000_000);
    plant(init, { f: `first\nneedle ${long}\n${long} needle\n\nneedle\n` });
    const channel = grep(init, "needle", [2, "f"]);
    const done = await channel.done(30_000);
    expect(channel.items.map((item) => item.number(7))).toEqual([2, 5]);
    expect(done.number(11)).toBe(1);
  });

  test("grep stops at its bound, in the middle of a file", async () => {
    const init = await Init.start();
    plant(init, { f: "x\n".repeat(1000) });
    const channel = grep(init, "x", [2, ""], [12, 7]);
    expect([(await channel.done()).number(10), channel.items.length]).toEqual([1, 7]);
    const exact = grep(init, "x", [2, ""], [12, 1000]);
    expect([(await exact.done()).number(10), exact.items.length]).toEqual([0, 1000]);
  });

  test("grep that would take for ever can be killed", async () => {
    const init = await Init.start();
    await init.exec(["python3", "-c", "open('f','w').write('a'*60000+'\\n')"]).exit();
    await init.exec(["python3", "-c", "open('f','a').write(('a'*60000+'\\n')*2000)"]).exit();
    const channel = grep(init, "(a|a)*(a|a)*(a|a)*b", [2, ""], [4, 1]);
    await init.ping();
    channel.kill();
    expect(await channel.failCode()).toBe("interrupted");
  });
});

describe("usage", () => {
  const usage = async (init: Init, ...more: [number, Value][]) => {
    const done = await init.file([1, Op.usage], ...more).done(30_000);
    return {
      bytes: done.number(2) ?? -1,
      apparent: done.number(13),
      entries: done.number(14),
      unlinked: done.number(15) ?? -1,
      truncated: done.number(10),
    };
  };

  // In a pid namespace of its own, where no stranger's deleted file is in sight.
  test("usage counts what is allocated as du does, holes not and hard links once", async () => {
    const init = await Init.start({ asProcess1: isRoot });
    plant(init, { "a/b/c": "x".repeat(10_000), d: "y".repeat(100_000) });
    linkSync(inside(init, "d"), inside(init, "e"));
    linkSync(inside(init, "d"), inside(init, "a/f"));
    truncateSync(inside(init, "a/b/c"), 2 ** 40);
    symlinkSync("/usr", inside(init, "link"));
    const du = Number(execFileSync("du", ["-s", "-B1", init.workspace], { encoding: "utf8" }).split("\t")[0]);
    expect(await usage(init, [2, ""])).toEqual({
      bytes: du,
      apparent: 2 ** 40 + 100_000,
      entries: 7,
      unlinked: 0,
      truncated: 0,
    });
    expect((await usage(init, [2, "d"])).entries).toBe(1);
    expect((await usage(init)).entries).toBe(7);
    expect(await usage(init, [2, ""], [12, 3])).toMatchObject({ entries: 3, truncated: 1 });
  });

  test("usage finds the bytes of deleted files that processes still hold", async () => {
    const init = await Init.start({ asProcess1: isRoot });
    const run = init.sh(
      "exec 3> gone; head -c 500000 /dev/urandom >&3; rm gone; echo ready; exec sleep 1000 4>&3",
    );
    await run.output("ready");
    const seen = await usage(init, [2, ""]);
    expect(seen.unlinked).toBeGreaterThanOrEqual(500_000);
    expect(seen.unlinked).toBeLessThan(600_000);
    run.kill();
    await run.exit();
    expect((await usage(init, [2, ""])).unlinked).toBe(0);
  });

  test.runIf(isRoot)(
    "usage counts a directory without permissions, and gives it its permissions back",
    async () => {
      const init = await Init.start({ uid: 54_321 });
      await init
        .sh("mkdir -p a/b; head -c 300000 /dev/urandom > a/b/hidden; chmod 000 a/b; chmod 000 a")
        .exit();
      const seen = await usage(init, [2, ""]);
      expect(seen.bytes).toBeGreaterThan(300_000);
      expect(seen.truncated).toBe(0);
      const mode = (path: string) => statSync(inside(init, path)).mode & 0o777;
      expect([mode("a"), mode("a/b")]).toEqual([0, 0]);
      expect((await init.file([1, Op.remove], [2, "a"], [4, 1]).done()).number(9)).toBe(3);
    },
  );
});
