import { describe, expect, test } from "vitest";
import {
  chosenJobId,
  isRepeatable,
  type JobRequestInput,
  job,
  jobId,
  jobRequest,
  problemsOf,
  sandboxKeyOf,
} from "../src/index.ts";

const accepted = (request: unknown) => jobRequest.safeParse(request).success;

describe("job request", () => {
  test.each<[string, JobRequestInput]>([
    ["a command", { kind: "exec", command: "ls" }],
    ["an argument vector", { kind: "exec", argv: ["ls"], stdin: "in", artifacts: ["*.txt"] }],
    ["code", { kind: "code", language: "python", source: "print(1)", args: ["-v"] }],
    ["a write", { kind: "write", path: "a", content: "" }],
    ["a read", { kind: "read", path: "a" }],
    ["a stat of the workspace", { kind: "stat", path: "" }],
    ["a list", { kind: "list" }],
    ["a removal", { kind: "remove", path: "a" }],
    ["a move", { kind: "move", from: "a", to: "b" }],
    ["an edit", { kind: "edit", path: "a", find: "x", replace: "" }],
    ["a patch", { kind: "patch", diff: "--- a\n+++ a\n" }],
    ["a search in text", { kind: "grep", pattern: "x" }],
    ["a search for names", { kind: "glob", patterns: ["**/*.ts"] }],
    ["a copy", { kind: "copy", files: [{ path: "a", content: "AA==", encoding: "base64" }] }],
    ["an archive in", { kind: "archive", direction: "in", content: "AAAA" }],
    ["an archive out", { kind: "archive", direction: "out" }],
    ["steps", { kind: "steps", steps: [{ kind: "read", path: "a" }] }],
  ])("a job request may be %s", (_, request) => {
    expect(accepted(request)).toBe(true);
  });

  test.each<[string, unknown]>([
    ["an unknown kind", { kind: "dance" }],
    ["an unknown field", { kind: "read", path: "a", colour: "red" }],
    ["a path that leads out", { kind: "write", path: "../a", content: "" }],
    ["the workspace as a file", { kind: "write", path: "", content: "" }],
    [
      "content that is not base64 although it claims to be",
      { kind: "write", path: "a", content: "é!", encoding: "base64" },
    ],
    ["a copy of such content", { kind: "copy", files: [{ path: "a", content: "A", encoding: "base64" }] }],
    ["a copy of nothing", { kind: "copy", files: [] }],
    ["an archive that is not base64", { kind: "archive", direction: "in", content: "*" }],
    ["a line before the first", { kind: "read", path: "a", line: 0 }],
    ["an edit that looks for nothing", { kind: "edit", path: "a", find: "", replace: "x" }],
    ["an invalid hash", { kind: "write", path: "a", content: "", ifMatch: "abc" }],
    ["a bad environment name in code", { kind: "code", language: "sh", source: "", env: { "A=B": "" } }],
    ["a NUL byte in an argument of code", { kind: "code", language: "sh", source: "", args: ["a\0"] }],
    ["another language", { kind: "code", language: "cobol", source: "" }],
    ["steps in steps", { kind: "steps", steps: [{ kind: "steps", steps: [{ kind: "list" }] }] }],
    ["no steps", { kind: "steps", steps: [] }],
    ["setuid", { kind: "write", path: "a", content: "", mode: 0o4755 }],
    ["a part of a file to persist", { kind: "write", path: "a", content: "", append: true, persist: true }],
  ])("a job request is refused with %s", (_, request) => {
    expect(accepted(request)).toBe(false);
  });

  test("a job request gets its defaults", () => {
    expect(jobRequest.parse({ kind: "read", path: "a" })).toMatchObject({
      as: "text",
      line: 1,
      lines: 2_000,
    });
    expect(jobRequest.parse({ kind: "code", language: "sh", source: "" })).toMatchObject({
      args: [],
      cwd: "",
      env: {},
    });
  });
});

describe("what is too long for a job", () => {
  const mebibyte = 1024 * 1024;
  const problems = (request: unknown) => problemsOf(jobRequest.safeParse(request).error ?? { issues: [] });

  test.each<[string, JobRequestInput, RegExp]>([
    [
      "content",
      { kind: "write", path: "a", content: "x".repeat(48 * mebibyte + 1) },
      /in parts, with append/,
    ],
    [
      "an archive",
      { kind: "archive", direction: "in", content: "AAAA".repeat(12 * mebibyte + 1) },
      /send several/,
    ],
    ["stdin", { kind: "exec", command: "cat", stdin: "x".repeat(48 * mebibyte + 1) }, /write it to a file/],
    ["source", { kind: "code", language: "sh", source: "x".repeat(mebibyte + 1) }, /write it to files/],
    [
      "an edit's text",
      { kind: "edit", path: "a", find: "x", replace: "x".repeat(mebibyte + 1) },
      /the whole file instead/,
    ],
    ["a diff", { kind: "patch", diff: "x".repeat(mebibyte + 1) }, /split it by file/],
  ])(
    "content that is too long for a job is refused with advice what to do instead: %s",
    (_, request, what) => {
      expect(problems(request)).toEqual([expect.stringMatching(what)]);
    },
  );

  test("a job that only has to be staged is not too long", () => {
    const content = Buffer.alloc(36 * mebibyte, 7).toString("base64");
    expect(accepted({ kind: "write", path: "a", content, encoding: "base64" })).toBe(true);
    expect(accepted({ kind: "archive", direction: "in", content })).toBe(true);
  });
});

describe("job whose worker died", () => {
  const repeatable = (request: JobRequestInput, idempotent = false) =>
    isRepeatable(jobRequest.parse(request), idempotent);

  test("a job whose worker died runs again when it only reads, or writes whole files", () => {
    expect(repeatable({ kind: "read", path: "a" })).toBe(true);
    expect(repeatable({ kind: "write", path: "a", content: "x" })).toBe(true);
    expect(repeatable({ kind: "copy", files: [{ path: "a", content: "x" }] })).toBe(true);
    expect(repeatable({ kind: "remove", path: "a", missingOk: true })).toBe(true);
    expect(repeatable({ kind: "exec", command: "make" }, true)).toBe(true);
  });

  test("a job whose worker died does not run again when a second run could differ from the first", () => {
    expect(repeatable({ kind: "exec", command: "make" })).toBe(false);
    expect(repeatable({ kind: "code", language: "sh", source: "" })).toBe(false);
    expect(repeatable({ kind: "write", path: "a", content: "x", append: true })).toBe(false);
    expect(repeatable({ kind: "write", path: "a", content: "x", mustNotExist: true })).toBe(false);
    expect(repeatable({ kind: "edit", path: "a", find: "x", replace: "y" })).toBe(false);
    expect(repeatable({ kind: "patch", diff: "x" })).toBe(false);
    expect(repeatable({ kind: "move", from: "a", to: "b" })).toBe(false);
    expect(repeatable({ kind: "remove", path: "a" })).toBe(false);
  });

  test("steps whose worker died run again only when each of them may be repeated", () => {
    const read = { kind: "read", path: "a" } as const;
    expect(repeatable({ kind: "steps", steps: [read, read] })).toBe(true);
    expect(repeatable({ kind: "steps", steps: [read, { kind: "exec", command: "make" }] })).toBe(false);
  });
});

describe("job", () => {
  const parsed = job.parse({ version: 1, id: "job-1", tenant: "acme", request: { kind: "list" } });

  test("a job gets the session main and the tenant's own sandbox unless it says otherwise", () => {
    expect(parsed).toMatchObject({ session: "main", scope: "tenant", idempotent: false, priority: 0 });
    expect(sandboxKeyOf(parsed)).toBe("acme");
  });

  test("a job belongs to one sandbox by its scope, and no two scopes share one", () => {
    const keys = [
      sandboxKeyOf({ ...parsed, scope: "tenant" }),
      sandboxKeyOf({ ...parsed, scope: "session" }),
      sandboxKeyOf({ ...parsed, scope: "agent" }),
      sandboxKeyOf({ ...parsed, scope: "shared" }),
    ];
    expect(keys).toEqual(["acme", "acme.s.main", "acme.a.default", "shared.all"]);
  });

  test("a job of another version is refused", () => {
    expect(job.safeParse({ ...parsed, version: 2 }).success).toBe(false);
  });

  test.each(["123", "a:b", "", "a b", "x".repeat(129)])("a job cannot have the id %j", (id) => {
    expect(jobId.safeParse(id).success).toBe(false);
    expect(chosenJobId.safeParse(id).success).toBe(false);
  });

  test.each([
    "nightly@1731880000000",
    "acme.build-1",
    "acme.nightly@1731880000000-redrive-2",
    "build-redrive-1",
  ])("a job that the fleet makes may have the id %j, which no caller can choose", (id) => {
    expect(jobId.safeParse(id).success).toBe(true);
    expect(chosenJobId.safeParse(id).success).toBe(false);
  });

  test.each(["wait", "meta", "events", "waiting-children", "id"])(
    "a job cannot have the id %j, which is a key of BullMQ's own",
    (id) => {
      expect(chosenJobId.safeParse(id).success).toBe(false);
    },
  );

  test("a job of the tenant name shared is refused, and one of the shared sandbox keeps its own tenant", () => {
    const order = { version: 1, id: "a", tenant: "acme", scope: "shared", request: { kind: "destroy" } };
    expect(sandboxKeyOf(job.parse(order))).toBe("shared.all");
    expect(job.safeParse({ ...order, tenant: "shared" }).success).toBe(false);
  });
});
