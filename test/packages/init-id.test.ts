import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const repoRoot = fileURLToPath(new URL("../..", import.meta.url));
const init = join(repoRoot, "packages/init");

test("a base image's init, which it names by its sources, is found by the id that the Makefile builds in", () => {
  execFileSync("flock", [join(init, "build/.lock"), "make", "-C", init, "all"], { stdio: "pipe" });
  const script = readFileSync(join(repoRoot, "infra/apps/init.sh"), "utf8");
  const [, command = ""] = /^id=\$\((.+)\)$/m.exec(script) ?? [];
  const named = execFileSync("sh", ["-c", command], { cwd: init, encoding: "utf8" }).trim();
  const built = /build_id\[\] = "(\w+)"/.exec(readFileSync(join(init, "build/build-id.c"), "utf8"))?.[1];
  expect(named).toBe(built);
});
