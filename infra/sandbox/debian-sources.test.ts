import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { hostSources } from "./debian-sources.mjs";

let apt: string;

beforeEach(() => {
  apt = mkdtempSync(path.join(os.tmpdir(), "berth-apt-"));
  mkdirSync(path.join(apt, "sources.list.d"));
});
afterEach(() => rmSync(apt, { recursive: true, force: true }));

test("only the host's own mirrors of the suite are used, in both forms of sources files", () => {
  writeFileSync(
    path.join(apt, "sources.list"),
    [
      "# deb http://old.example/debian bookworm main",
      "deb [arch=amd64 signed-by=/keys/a.gpg] http://one.example/debian bookworm main contrib",
      "deb-src http://one.example/debian bookworm main",
      "deb http://tools.example/apt bookworm stable",
      "",
    ].join("\n"),
  );
  writeFileSync(
    path.join(apt, "sources.list.d/debian.sources"),
    [
      "Types: deb deb-src",
      "# URIs: http://snapshot.example",
      "URIs: http://two.example/debian",
      "Suites: bookworm-updates bookworm-backports",
      "Components: main non-free",
      "Signed-By: /keys/b.gpg",
      "",
      "Types: deb",
      "URIs: http://three.example/debian-security",
      "Suites: bookworm-security",
      "Components: main",
      "Enabled: no",
      "",
    ].join("\n"),
  );
  writeFileSync(path.join(apt, "sources.list.d/vendor.list"), "deb http://vendor.example nodistro main\n");
  writeFileSync(
    path.join(apt, "sources.list.d/debian.list.save"),
    "deb http://saved.example bookworm main\n",
  );
  expect(hostSources(apt)).toEqual([
    "deb [signed-by=/keys/a.gpg] http://one.example/debian bookworm main",
    "deb [signed-by=/keys/b.gpg] http://two.example/debian bookworm-updates main",
  ]);
});

test("on a host of another distribution no mirror is taken from it, and mmdebstrap uses its default", () => {
  writeFileSync(path.join(apt, "sources.list"), "deb http://mirror.example/ubuntu noble main\n");
  expect(hostSources(apt)).toEqual([]);
});
