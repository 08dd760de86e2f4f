import { isFault, type JobRequestInput } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test } from "../support/host.ts";
import { done, names, run } from "../support/job-kinds.ts";

describe("whatever the kind", () => {
  test("an abort before it begins is cancelled and touches nothing", async ({ host }) => {
    const sandbox = await host.sandbox();
    const signal = AbortSignal.abort("too late");
    for (const request of [
      { kind: "exec", command: "touch a" },
      { kind: "write", path: "a", content: "" },
      { kind: "steps", steps: [{ kind: "write", path: "a", content: "" }] },
    ] satisfies JobRequestInput[]) {
      expect((await run(sandbox, request, { signal })).outcome).toEqual({
        kind: "cancelled",
        reason: "too late",
      });
    }
    expect(await names(sandbox)).toEqual([]);
  });

  test("a fault of ours is thrown and not made an outcome", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.stop();
    for (const request of [
      { kind: "exec", command: "true" },
      { kind: "code", language: "sh", source: "" },
      { kind: "read", path: "a" },
      { kind: "patch", diff: "--- a\n+++ a\n@@ -1 +1 @@\n-a\n+b\n" },
      { kind: "copy", files: [{ path: "a", content: "" }] },
    ] satisfies JobRequestInput[]) {
      await expect(run(sandbox, request), request.kind).rejects.toSatisfy((error) =>
        isFault(error, "sandbox-stopped"),
      );
    }
  });

  test("an image without init's support does the same", async ({ host }) => {
    const sandbox = await host.sandbox({ profile: { transport: "exec" } });
    const result = await run(sandbox, {
      kind: "steps",
      steps: [
        { kind: "copy", files: ["a", "b", "c"].map((path) => ({ path: `d/${path}`, content: `${path}\n` })) },
        { kind: "edit", path: "d/a", find: "a", replace: "A" },
        { kind: "patch", diff: "--- a/d/b\n+++ b/d/b\n@@ -1 +1 @@\n-b\n+B\n" },
        { kind: "code", language: "python", source: "print(open('d/a').read() + open('d/b').read())" },
        { kind: "archive", direction: "out", paths: ["d"] },
        { kind: "read", path: "d/c" },
      ],
    });
    expect(result.outcome).toEqual(done);
    expect(result.value.steps?.[3]?.value.stdout).toBe("A\nB\n\n");
    expect(result.value.steps?.[4]?.value.count).toBe(4);
    expect(await names(sandbox)).toEqual(["d", "d/a", "d/b", "d/c"]);
  });
});
