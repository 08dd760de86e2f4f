import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A small disk of the test's own: an image, mounted through a loop device. Where it is mounted. */
export function loopDisk(
  bytes: number,
  { make = ["mkfs.ext4", "-q", "-F", "-m", "0"], options = "loop" } = {},
): string {
  const directory = mkdtempSync(join(tmpdir(), "berth-disk-"));
  const image = join(directory, "image");
  const place = join(directory, "mounted");
  writeFileSync(image, "");
  truncateSync(image, bytes);
  const [program = "", ...words] = make;
  execFileSync(program, [...words, image], { stdio: "pipe" });
  mkdirSync(place);
  execFileSync("mount", ["-o", options, image, place]);
  onTestFinished(() => {
    execFileSync("umount", ["--lazy", place]);
    rmSync(directory, { recursive: true, force: true });
  });
  return place;
}
