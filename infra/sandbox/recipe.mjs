/**
 * What the sandbox image is made of. Its fingerprint is a label on the image, so an image built from an older recipe
 * is recognised and rebuilt, whichever way it was built.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const folder = path.dirname(fileURLToPath(import.meta.url));

export const SANDBOX_IMAGE = "berth-sandbox:bookworm";
export const BUILD_ESSENTIAL_IMAGE = "berth-sandbox:bookworm-build";
export const BUSYBOX_IMAGE = "berth-busybox:test";
export const ENTRYPOINT_IMAGE = "berth-entrypoint:test";

export const BASE_IMAGE = "debian:bookworm-slim";
export const SUITE = "bookworm";
export const RECIPE_LABEL = "berth.sandbox.recipe";

/** What a `docker import` must be told, since a file system carries none of it; the Dockerfile says the same. */
export const IMAGE_SETTINGS = [
  "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  "ENV LANG=C.UTF-8",
  "WORKDIR /workspace",
  'CMD ["bash"]',
];

// What debian:bookworm-slim leaves out as well; nobody reads manuals in a sandbox.
const LEFT_OUT = ["man", "doc", "info", "locale", "lintian"];

/** What mmdebstrap must be told to make what debian:bookworm-slim is. */
export const FILE_SYSTEM_OPTIONS = [
  "--variant=minbase",
  ...LEFT_OUT.map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`),
  "--dpkgopt=path-include=/usr/share/doc/*/copyright",
  '--aptopt=Acquire::Languages "none"',
];

/** @param {{ buildEssential?: boolean }} [options] */
export function packageList(options = {}) {
  const lines = readFileSync(path.join(folder, "packages.txt"), "utf8").split("\n");
  const packages = lines.map((line) => line.replace(/#.*/, "").trim()).filter(Boolean);
  return options.buildEssential ? [...packages, "build-essential"] : packages;
}

/** @param {unknown[]} extra what else the image depends on */
export function fingerprint(...extra) {
  const hash = createHash("sha256");
  for (const name of ["packages.txt", "finish.sh", "Dockerfile"])
    hash.update(readFileSync(path.join(folder, name)));
  return hash
    .update(JSON.stringify([IMAGE_SETTINGS, FILE_SYSTEM_OPTIONS, SUITE, BASE_IMAGE, ...extra]))
    .digest("hex");
}
