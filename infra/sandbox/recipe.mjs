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
/**
 * The image variants, and their package lists besides packages.txt. Set-up makes `base`; `npm run image` makes the others.
 * @typedef {"base" | "build" | "full" | "browser"} Variant
 * @type {Record<Variant, { image: string, lists: string[] }>}
 */
export const VARIANTS = {
  base: { image: SANDBOX_IMAGE, lists: [] },
  build: { image: `${SANDBOX_IMAGE}-build`, lists: ["packages-build.txt"] },
  full: { image: `${SANDBOX_IMAGE}-full`, lists: ["packages-build.txt", "packages-full.txt"] },
  browser: { image: `${SANDBOX_IMAGE}-browser`, lists: ["packages-browser.txt"] },
};
export const BUSYBOX_IMAGE = "berth-busybox:test";
export const ENTRYPOINT_IMAGE = "berth-entrypoint:test";

export const BASE_IMAGE = "debian:bookworm-slim";
export const SUITE = "bookworm";
export const RECIPE_LABEL = "berth.sandbox.recipe";

/** Settings for `docker import`, since a file system carries none of them; the Dockerfile has the same. */
export const IMAGE_SETTINGS = [
  "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  "ENV LANG=C.UTF-8",
  "WORKDIR /workspace",
  'CMD ["bash"]',
];

// What debian:bookworm-slim leaves out as well; manuals are not needed in a sandbox.
const LEFT_OUT = ["man", "doc", "info", "locale", "lintian"];

/** Options with which mmdebstrap makes the equivalent of debian:bookworm-slim. */
export const FILE_SYSTEM_OPTIONS = [
  "--variant=minbase",
  ...LEFT_OUT.map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`),
  "--dpkgopt=path-include=/usr/share/doc/*/copyright",
  '--aptopt=Acquire::Languages "none"',
];

/** Of every variant: they are what a build with the Dockerfile needs. */
export const RECIPE_FILES = [
  "Dockerfile",
  "finish.sh",
  "packages.txt",
  "packages-build.txt",
  "packages-full.txt",
  "packages-browser.txt",
];

/** @param {Variant} [variant] */
export function packageList(variant = "base") {
  return ["packages.txt", ...VARIANTS[variant].lists].flatMap((file) => {
    const lines = readFileSync(path.join(folder, file), "utf8").split("\n");
    return lines.map((line) => line.replace(/#.*/, "").trim()).filter(Boolean);
  });
}

/** @param {Variant} [variant] */
export function fingerprint(variant = "base") {
  const hash = createHash("sha256");
  for (const name of ["packages.txt", ...VARIANTS[variant].lists, "finish.sh", "Dockerfile"])
    hash.update(readFileSync(path.join(folder, name)));
  return hash.update(JSON.stringify([IMAGE_SETTINGS, FILE_SYSTEM_OPTIONS, SUITE, BASE_IMAGE])).digest("hex");
}
