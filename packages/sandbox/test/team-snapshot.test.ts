import { existsSync } from "node:fs";
import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { FileEntry } from "@berth/protocol";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import type { SandboxFiles } from "../src/port.ts";
import { copySnapshot, staysInside } from "../src/team-snapshot.ts";

const entry = (path: string, more: Partial<FileEntry> = {}): FileEntry => ({
  ...{ path, type: "file", size: 1, mode: 0o600, modifiedMs: 0, ...more },
});
const link = (path: string, target: string) => entry(path, { type: "symlink", target });
const folder = (path: string) => entry(path, { type: "directory" });

/** The answers of a process 1 that may be the tenant's own program. */
function said(items: readonly FileEntry[], bytesOf: (path: string) => string = () => "x") {
  return {
    list: async () => ({ items, truncated: false }),
    read: async (path: string, { onData }: { onData?: (bytes: Uint8Array) => unknown } = {}) => {
      await onData?.(Buffer.from(bytesOf(path)));
      return { bytes: Buffer.alloc(0) };
    },
  } as unknown as Pick<SandboxFiles, "list" | "read">;
}

async function copied(
  items: readonly FileEntry[],
  bounds = { bytes: 100, entries: 100 },
  bytesOf?: (path: string) => string,
) {
  const directory = await mkdtemp(join(tmpdir(), "berth-team-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const target = join(directory, "inside", "peer");
  await mkdir(dirname(target));
  const { signal } = new AbortController();
  return { directory, target, report: await copySnapshot(said(items, bytesOf), target, { bounds, signal }) };
}

test("a hostile process 1 makes no file outside of the snapshot, and none through a link in it", async () => {
  const names = ["../up", "/etc/berth-x", "a/../../up", "", ".", "a//b", "./x", "c\nd", "deep/../x", "x/"];
  const items = [
    ...names.map((name) => entry(name)),
    ...names.map((name) => folder(name)),
    link("door", ".."),
    link("home", "/tmp"),
    entry("door/y"),
    link("good", "sub"),
    folder("sub"),
    entry("good/through"),
    entry("sub/fine", { mode: 0o755 }),
    entry("pipe", { type: "other" }),
  ];
  const { directory, target, report } = await copied(items);
  expect((await readdir(directory)).sort()).toEqual(["inside"]);
  expect(await readdir(join(directory, "inside"))).toEqual(["peer"]);
  expect((await readdir(target)).sort()).toEqual(["good", "sub"]);
  expect(await readlink(join(target, "good"))).toBe("sub");
  expect((await readdir(join(target, "sub"))).sort()).toEqual(["fine"]);
  expect((await lstat(join(target, "sub", "fine"))).mode & 0o777).toBe(0o755);
  expect(existsSync("/etc/berth-x")).toBe(false);
  expect(report).toMatchObject({ entries: 3, cut: false });
});

test("a file that grows past the bound while it is read takes no more than the bound's room", async () => {
  const grow = (path: string) => (path === "b" ? "y".repeat(90) : "x".repeat(5));
  const { target, report } = await copied(
    [entry("a", { size: 5 }), entry("b", { size: 3 }), entry("c", { size: 50 })],
    { bytes: 100, entries: 100 },
    grow,
  );
  expect(report).toMatchObject({ entries: 2, bytes: 95, leftOut: 1, cut: true });
  expect(await readFile(join(target, "a"), "utf8")).toBe("xxxxx");
});

test("a link that is kept leads to a place inside, whatever other links there are", async () => {
  const name = fc.constantFrom("a", "b", "c", "..", ".");
  const path = fc
    .array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 3 })
    .map((names) => names.join("/"));
  const target = fc.array(name, { minLength: 1, maxLength: 5 }).map((names) => names.join("/"));
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(path, target), { maxLength: 8 }),
      fc.array(path, { maxLength: 6 }),
      async (links, folders) => {
        const above = folders.flatMap((one) =>
          one.split("/").map((_, index, all) => all.slice(0, index + 1).join("/")),
        );
        const unique = new Map(
          [...links.map(([one, to]) => link(one, to)), ...above.map(folder)].map((one) => [one.path, one]),
        );
        const { target: root, report } = await copied([...unique.values()]);
        expect(report.cut).toBe(false);
        for (const { path: one, type } of unique.values()) {
          const place = join(root, one);
          if (type !== "symlink" || !existsSync(place)) continue;
          expect(`${await realpath(place)}/`).toContain(`${await realpath(root)}/`);
        }
      },
    ),
    { numRuns: 150, seed: 12 },
  );
});

test("links that go up after going down, or out, are left out", () => {
  for (const [path, target] of [
    ["l", "/etc/passwd"],
    ["l", "../x"],
    ["a/l", "../../x"],
    ["a/b/t", "s/../../../etc/passwd"],
    ["l", "a/.."],
    ["l", ""],
    ["l", "a\nb"],
  ] as const)
    expect(staysInside(path, target), `${path} -> ${target}`).toBe(false);
  for (const [path, target] of [
    ["l", "a/b"],
    ["a/l", "../x"],
    ["a/b/l", "../../x/y"],
    ["l", "."],
  ] as const)
    expect(staysInside(path, target), `${path} -> ${target}`).toBe(true);
});
