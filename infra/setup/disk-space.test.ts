import os from "node:os";
import { expect, test } from "vitest";
import { judgeDisk, volumeAt } from "./disk-space.mjs";

const GiB = 2 ** 30;
const oneVolume = (freeBytes: number) => (at: string) => ({ device: 1, at, freeBytes });

test("set-up refuses to start with too little disk for its open steps, and prints both numbers", () => {
  const needs = [
    { at: "/work", bytes: GiB },
    { at: "/usr", bytes: GiB },
  ];
  expect(() => judgeDisk(needs, oneVolume(2 * GiB))).toThrow("2.0 GiB free at /work, 2.5 GiB needed");
  expect(judgeDisk(needs, oneVolume(3 * GiB))).toBe("3.0 GiB free at /work, 2.5 GiB needed");
});

test("set-up goes on with a nearly full disk when nothing is left to install", () => {
  expect(judgeDisk([{ at: "/work", bytes: 0 }], oneVolume(1))).toBe("0.0 GiB free at /work, nothing needed");
});

test("set-up checks the free space of each file system separately", () => {
  const volumeOf = (at: string) =>
    at === "/small" ? { device: 1, at, freeBytes: GiB / 4 } : { device: 2, at, freeBytes: 9 * GiB };
  const needs = [
    { at: "/big", bytes: GiB },
    { at: "/small", bytes: 1 },
  ];
  expect(() => judgeDisk(needs, volumeOf)).toThrow("free at /small");
});

test("set-up checks the disk on which a missing folder will be made", () => {
  const home = volumeAt(os.tmpdir());
  expect(volumeAt(`${os.tmpdir()}/not/yet/there`)).toMatchObject({ device: home.device, at: home.at });
});
