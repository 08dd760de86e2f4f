import { isFault, type JobRequestInput } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test } from "../support/host.ts";
import { names, run } from "../support/job-kinds.ts";

describe("job of any kind", () => {
  test("a job of any kind that is aborted before it begins is cancelled, and touches nothing", async ({
    host,
  }) => {
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

  test("a fault during a job of any kind is thrown, and does not become an outcome", async ({ host }) => {
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
});
