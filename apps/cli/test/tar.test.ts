import { tarOf } from "@berth/protocol";
import { expect, test } from "vitest";
import { type TarEntry, unpackTar } from "../src/copy/tar-unpack.ts";

const entries: TarEntry[] = [
  { path: "dir", type: "directory", mode: 0o755, modifiedMs: 1_000 },
  {
    path: "dir/file",
    type: "file",
    mode: 0o640,
    modifiedMs: 1_700_000_000_000,
    bytes: Buffer.from("content"),
  },
  { path: "empty", type: "file", mode: 0o600, modifiedMs: 0, bytes: Buffer.alloc(0) },
  { path: "block", type: "file", mode: 0o600, modifiedMs: 0, bytes: Buffer.alloc(512, 7) },
  {
    path: `${"long/".repeat(60)}naïve 🚢`,
    type: "file",
    mode: 0o600,
    modifiedMs: 0,
    bytes: Buffer.from([0, 255]),
  },
  { path: "link", type: "symlink", mode: 0o777, modifiedMs: 0, target: `to/${"far/".repeat(50)}away` },
];

test("what is packed is unpacked the same, long names, empty files and links included", () => {
  const back = [...unpackTar(tarOf(entries))];
  expect(
    back.map(({ path, type, mode, modifiedMs, target }) => ({ path, type, mode, modifiedMs, target })),
  ).toEqual(
    entries.map(({ path, type, mode, modifiedMs, target }) => ({ path, type, mode, modifiedMs, target })),
  );
  for (const [index, { bytes }] of back.entries())
    expect(Buffer.from(bytes ?? []).equals(Buffer.from(entries[index]?.bytes ?? []))).toBe(true);
});

test("an archive that is cut off is not taken for a whole one", () => {
  const whole = tarOf([
    { path: "file", type: "file", mode: 0o600, modifiedMs: 0, bytes: Buffer.alloc(2_000) },
  ]);
  expect(() => [...unpackTar(whole.subarray(0, 1_024))]).toThrow("ends too early");
});
