import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { tarOf } from "./tar.mjs";

test("tar reads the archives of set-up: files of any length, folders and links", () => {
  const archive = tarOf([
    { name: "bin/" },
    { name: "bin/program", mode: 0o755, bytes: Buffer.alloc(513, "x") },
    { name: "bin/exact", bytes: Buffer.alloc(512, "y") },
    { name: "bin/link", linkTo: "program" },
    { name: "tmp/", mode: 0o1777 },
  ]);
  const { stdout, stderr, status } = spawnSync("tar", ["--list", "--verbose", "--numeric-owner"], {
    input: archive,
    encoding: "utf8",
  });
  expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
  const seen = stdout
    .trim()
    .split("\n")
    .map((line) => line.replace(/\s+\d{4}-\S+ \S+/, "").replace(/\s+/g, " "));
  expect(seen).toEqual([
    "drwxr-xr-x 0/0 0 bin/",
    "-rwxr-xr-x 0/0 513 bin/program",
    "-rw-r--r-- 0/0 512 bin/exact",
    "lrw-r--r-- 0/0 0 bin/link -> program",
    "drwxrwxrwt 0/0 0 tmp/",
  ]);
  const content = spawnSync("tar", ["--extract", "--to-stdout", "bin/program"], { input: archive });
  expect(content.stdout.equals(Buffer.alloc(513, "x"))).toBe(true);
});

test("set-up's archives refuse a name that would be cut off", () => {
  expect(() => tarOf([{ name: "x".repeat(101) }])).toThrow(RangeError);
});
