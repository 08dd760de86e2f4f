import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Channel } from "./support/channel.ts";
import { Op, read, readText, write } from "./support/files.ts";
import { fixture } from "./support/fixture.ts";
import { Init } from "./support/init-process.ts";

const outsides: string[] = [];

/** A directory beside the workspace, with a secret in it. */
function outside(): string {
  const dir = mkdtempSync(join(tmpdir(), "init-outside-"));
  writeFileSync(join(dir, "secret"), "the secret");
  mkdirSync(join(dir, "sub"));
  outsides.push(dir);
  return dir;
}

afterEach(() => {
  for (const dir of outsides.splice(0)) rmSync(dir, { recursive: true, force: true });
});

/** Every operation that takes a path, on this one. */
function everyOperation(init: Init, path: string): [string, Channel][] {
  return [
    ["read", read(init, path)],
    ["write", init.file([1, Op.write], [2, path], [8, 0], [4, 2])],
    ["append", init.file([1, Op.write], [2, path], [8, 0], [4, 1])],
    ["stat", init.file([1, Op.stat], [2, path])],
    ["list", init.file([1, Op.list], [2, path])],
    ["remove", init.file([1, Op.remove], [2, path], [4, 1])],
    ["move from", init.file([1, Op.move], [2, path], [3, "moved"])],
    ["move to", init.file([1, Op.move], [2, "present"], [3, path], [4, 1])],
    ["mkdir", init.file([1, Op.mkdir], [2, path], [4, 2])],
    ["glob", init.file([1, Op.glob], [2, path], [11, "*"])],
    ["grep", init.file([1, Op.grep], [2, path], [11, "secret"])],
    ["usage", init.file([1, Op.usage], [2, path])],
    ["cwd", init.exec(["true"], { cwd: path })],
  ];
}

describe("path", () => {
  test.each([
    ["that climbs", "../x"],
    ["that climbs in the middle", "a/../../x"],
    ["that climbs and comes back", "a/../b"],
    ["that ends in ..", "a/.."],
    ["with NUL", "a\0b"],
    ["with a newline", "a\nb"],
    ["with DEL", "a\x7fb"],
    ["with a name of 256 bytes", "n".repeat(256)],
    ["of 4,096 bytes", `${"d/".repeat(2047)}ab`],
  ])("a path %s is invalid to every operation", async (_, path) => {
    const init = await Init.start();
    for (const [name, channel] of everyOperation(init, path)) {
      expect(`${name}: ${await channel.failCode()}`).toBe(`${name}: invalid-path`);
    }
  });

  test.each(["/etc/passwd", "/", "//", "/workspacex", "/proc/self/root"])(
    "the path %s is outside the workspace to every operation",
    async (path) => {
      const init = await Init.start();
      for (const [name, channel] of everyOperation(init, path)) {
        expect(`${name}: ${await channel.failCode()}`).toBe(`${name}: outside-workspace`);
      }
    },
  );

  test("a path beneath the workspace's own name is as good as one relative to it", async () => {
    const init = await Init.start();
    await write(init, `${init.workspace}/a//b/./c`, "x", [4, 2]).done();
    expect(await readText(init, "a/b/c")).toBe("x");
    expect(await readText(init, `${init.workspace}/a/b/c`)).toBe("x");
    expect(await read(init, `${init.workspace}x/a`).failCode()).toBe("outside-workspace");
    expect(await read(init, `${init.workspace}/../etc/passwd`).failCode()).toBe("invalid-path");
  });

  test("a path may hold any other byte, and names of 255 bytes", async () => {
    const init = await Init.start();
    for (const name of ["a b", "ünï çødé", "-rf", "$(touch pwned)", "'\"`\\*?[", "n".repeat(255), "..."]) {
      await write(init, name, name).done();
      expect(await readText(init, name)).toBe(name);
    }
  });

  test("a path may be 4,095 bytes long", async () => {
    const init = await Init.start();
    const path = `${"d/".repeat(2047)}f`;
    await write(init, path, "deep", [4, 2]).done();
    expect(await readText(init, path)).toBe("deep");
    await init.file([1, Op.remove], [2, "d"], [4, 1]).done();
  });
});

describe("symlinks", () => {
  test("symlinks that stay inside are followed: relative, absolute, through .. and each other", async () => {
    const init = await Init.start();
    mkdirSync(join(init.workspace, "a/b"), { recursive: true });
    writeFileSync(join(init.workspace, "a/file"), "found");
    const links: Record<string, string> = {
      "a/b/up": "../file",
      absolute: `${init.workspace}/a/file`,
      dir: "a/b",
      chain: "dir/up",
      dots: "./a/./b/../../a//file",
      root: init.workspace,
      here: ".",
    };
    for (const [name, target] of Object.entries(links)) symlinkSync(target, join(init.workspace, name));
    for (const path of ["a/b/up", "absolute", "dir/up", "chain", "dots", "root/a/file", "here/here/a/file"]) {
      expect(await readText(init, path)).toBe("found");
    }
  });

  test("symlinks that leave are refused by every operation that would follow them, at the end and in the middle", async () => {
    const init = await Init.start();
    const away = outside();
    const targets = [
      away,
      `${away}/sub`,
      "..",
      "../",
      `../${away.split("/").at(-1)}`,
      "/proc/self/root/etc",
      "/proc/self/cwd",
    ];
    for (const [n, target] of targets.entries()) {
      symlinkSync(target, join(init.workspace, `out${n}`));
      for (const [name, channel] of everyOperation(init, `out${n}/secret`)) {
        const ended = await channel.end();
        expect(`${name} ${target}: ${ended.payload.includes("outside-workspace")}`).toBe(
          `${name} ${target}: true`,
        );
      }
      for (const operation of [Op.read, Op.list, Op.stat, Op.usage, Op.grep, Op.glob]) {
        const channel = init.file([1, operation], [2, `out${n}`], [11, "x"]);
        expect(await channel.failCode()).toBe("outside-workspace");
      }
    }
    symlinkSync(`${away}/secret`, join(init.workspace, "file"));
    symlinkSync(`${away}/new`, join(init.workspace, "new"));
    expect(await read(init, "file").failCode()).toBe("outside-workspace");
    expect(await write(init, "file", "x").failCode()).toBe("outside-workspace");
    expect(await write(init, "new", "x").failCode()).toBe("outside-workspace");
    expect(await write(init, "new", "x", [4, 1]).failCode()).toBe("outside-workspace");
    expect(readFileSync(join(away, "secret"), "utf8")).toBe("the secret");
    expect(existsSync(join(away, "new"))).toBe(false);
  });

  test("symlinks in circles are too many", async () => {
    const init = await Init.start();
    symlinkSync("b", join(init.workspace, "a"));
    symlinkSync("a", join(init.workspace, "b"));
    symlinkSync("self/x", join(init.workspace, "self"));
    expect(await read(init, "a").failCode()).toBe("too-many-links");
    expect(await read(init, "self").failCode()).toBe("too-many-links");
    for (let i = 0; i < 41; i++) symlinkSync(i === 0 ? "end" : `l${i - 1}`, join(init.workspace, `l${i}`));
    writeFileSync(join(init.workspace, "end"), "x");
    expect(await readText(init, "l39")).toBe("x");
    expect(await read(init, "l40").failCode()).toBe("too-many-links");
  });

  test("symlinks with targets of thousands of bytes are followed or refused, never cut", async () => {
    const init = await Init.start();
    symlinkSync(`${"./".repeat(2000)}end`, join(init.workspace, "long"));
    symlinkSync(`${"x/".repeat(2000)}end`, join(init.workspace, "lost"));
    writeFileSync(join(init.workspace, "end"), "x");
    expect(await readText(init, "long")).toBe("x");
    expect(await read(init, "lost").failCode()).toBe("not-found");
  });
});

describe("directory that is swapped for a symlink again and again", () => {
  test("a directory that is swapped for a symlink again and again leads no operation out", async () => {
    const init = await Init.start({ binary: "release" });
    const away = outside();
    const { workspace } = init;
    mkdirSync(join(workspace, "real/sub"), { recursive: true });
    writeFileSync(join(workspace, "real/secret"), "harmless");
    writeFileSync(join(workspace, "real/sub/x"), "");
    symlinkSync(away, join(workspace, "trap"));
    const swapper = init.exec([fixture("swap"), join(workspace, "real"), join(workspace, "trap")]);
    await swapper.started();
    const codes = new Set<string>();
    const until = Date.now() + 20_000;
    let rounds = 0;
    let leaked = 0;
    for (; Date.now() < until && (rounds < 60 || !codes.has("outside-workspace")); rounds++) {
      const reading = read(init, "real/secret");
      const writing = write(init, "real/made", "x");
      const listing = init.file([1, Op.list], [2, "real"], [4, 1]);
      const searching = init.file([1, Op.grep], [2, ""], [11, "the secret"]);
      const removing = init.file([1, Op.remove], [2, "real/sub"], [4, 1]);
      const moving = init.file([1, Op.move], [2, "real/secret"], [3, "real/secret2"]);
      const back = init.file([1, Op.move], [2, "real/secret2"], [3, "real/secret"]);
      const again = init.file([1, Op.mkdir], [2, "real/sub"], [4, 2]);
      for (const channel of [reading, writing, listing, searching, removing, moving, back, again]) {
        const last = await channel.end();
        if (last.type === 0x47) codes.add((await channel.fail()).code);
      }
      if (reading.data.includes("the secret") || searching.items.length > 0) leaked++;
    }
    swapper.kill();
    await swapper.exit();
    expect(leaked).toBe(0);
    expect(codes.has("outside-workspace")).toBe(true);
    expect(readFileSync(join(away, "secret"), "utf8")).toBe("the secret");
    expect(existsSync(join(away, "made"))).toBe(false);
    expect(existsSync(join(away, "sub"))).toBe(true);
  });
});
