import { describe, expect, test } from "vitest";
import {
  canonicalTenant,
  execRequest,
  pathProblem,
  sandboxKey,
  tenantId,
  workspaceFilePath,
} from "../src/index.ts";

describe("names at the edge", () => {
  test.each(["a", "acme", "a-b_c", "0", "a".repeat(63)])("%s is a tenant id", (id) => {
    expect(tenantId.safeParse(id).success).toBe(true);
  });

  test.each(["", "-a", "a-", "A", "a.b", "a/b", "../a", "a\n", "a".repeat(64), "é"])(
    "%j is not the id of a directory's tenant",
    (id) => {
      expect(canonicalTenant.safeParse(id).success).toBe(false);
    },
  );

  test("a sandbox key is up to three names", () => {
    expect(sandboxKey.safeParse("acme.main.coder").success).toBe(true);
    for (const bad of ["a..b", ".a", "a.", "a.b.c.d", "a.-b"])
      expect(sandboxKey.safeParse(bad).success).toBe(false);
  });
});

describe("paths at the edge", () => {
  test.each(["a", "a/b.txt", "/workspace/a", "./a", ".hidden", "a b", "é", "..a", "a.."])(
    "the path %j is valid",
    (path) => {
      expect(pathProblem(path)).toBeUndefined();
    },
  );

  test.each([
    ["/etc/passwd", /absolute/],
    ["/workspacex", /absolute/],
    ["../a", /"\.\."/],
    ["a/../../b", /"\.\."/],
    ["/workspace/../etc", /"\.\."/],
    ["a\0b", /control byte \(0x00\) at position 1/],
    ["a\nb", /0x0a/],
    ["a\x7f", /0x7f/],
    ["x".repeat(256), /255 bytes/],
    ["é".repeat(128), /255 bytes/],
    ["a/".repeat(2048), /4095 bytes/],
  ])("the path %j is refused with its reason", (path, reason) => {
    expect(pathProblem(path)).toMatch(reason);
  });

  test("a file's path names more than the workspace itself", () => {
    for (const bad of ["", ".", "./", "/workspace", "/workspace/."]) {
      expect(workspaceFilePath.safeParse(bad).success, bad).toBe(false);
    }
    for (const good of ["a", "...", ".a"]) expect(workspaceFilePath.safeParse(good).success, good).toBe(true);
  });
});

describe("exec request", () => {
  test("an exec request is a command or an argument vector, not both", () => {
    expect(execRequest.safeParse({ command: "ls" }).success).toBe(true);
    expect(execRequest.safeParse({ argv: ["ls", "-l"] }).success).toBe(true);
    expect(execRequest.safeParse({ command: "ls", argv: ["ls"] }).success).toBe(false);
    expect(execRequest.safeParse({}).success).toBe(false);
  });

  test("an exec request refuses NUL bytes, bad names and arguments the kernel would not take", () => {
    expect(execRequest.safeParse({ command: "a\0b" }).success).toBe(false);
    expect(execRequest.safeParse({ command: "a", env: { "A=B": "" } }).success).toBe(false);
    expect(execRequest.safeParse({ command: "x".repeat(131_072) }).success).toBe(false);
  });
});
