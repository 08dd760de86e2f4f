import type { Sandbox } from "@berth/sandbox";
import { describe, expect } from "vitest";
import { before } from "../support/gated-sandbox.ts";
import { test } from "../support/host.ts";
import { done, names, refused, run, text } from "../support/job-kinds.ts";

describe("patch", () => {
  const diff = `diff --git a/src/a.txt b/src/a.txt
--- a/src/a.txt
+++ b/src/a.txt
@@ -1,2 +1,2 @@
 keep
-old
+new
diff --git a/made.sh b/made.sh
new file mode 100755
--- /dev/null
+++ b/made.sh
@@ -0,0 +1 @@
+echo made
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/here.txt b/sub/there.txt
similarity index 50%
rename from here.txt
rename to sub/there.txt
--- a/here.txt
+++ b/sub/there.txt
@@ -1 +1 @@
-moved
+moved on
`;

  async function ready(sandbox: Sandbox): Promise<void> {
    await sandbox.files.write("src/a.txt", "above\nkeep\nold\n");
    await sandbox.files.write("gone.txt", "bye\n");
    await sandbox.files.write("here.txt", "moved\n", { mode: 0o640 });
  }

  test("patch changes, makes, removes and renames files in one job", async ({ host }) => {
    const sandbox = await host.sandbox();
    await ready(sandbox);
    const result = await run(sandbox, { kind: "patch", diff });
    expect(result).toMatchObject({ outcome: done, value: { count: 5 } });
    expect(await names(sandbox)).toEqual(["made.sh", "src", "src/a.txt", "sub", "sub/there.txt"]);
    expect(await text(sandbox, "src/a.txt")).toBe("above\nkeep\nnew\n");
    expect(await text(sandbox, "sub/there.txt")).toBe("moved on\n");
    expect((await sandbox.files.stat("made.sh")).mode & 0o777).toBe(0o755);
    expect((await sandbox.files.stat("sub/there.txt")).mode & 0o777).toBe(0o640);
  });

  test("patch that fits one file and not another changes neither, and names each hunk", async ({ host }) => {
    const sandbox = await host.sandbox();
    await ready(sandbox);
    await sandbox.files.write("gone.txt", "bye bye\n");
    await sandbox.files.write("made.sh", "mine\n");
    const result = await run(sandbox, { kind: "patch", diff });
    expect(result.outcome).toEqual(
      refused(
        "patch-failed",
        /^nothing was changed: made\.sh: it exists already; gone\.txt: hunk 1 \(@@ -1 \+0,0 @@\) does not match anywhere: line 1 is "bye bye", where the patch has "bye"$/,
      ),
    );
    expect(await text(sandbox, "src/a.txt")).toBe("above\nkeep\nold\n");
  });

  test("patch whose last write cannot be made takes the earlier ones back", async ({ host }) => {
    const sandbox = await host.sandbox();
    await ready(sandbox);
    const raced = before(sandbox, "remove", async (path) => {
      if (path === "here.txt")
        await sandbox.exec({ command: "rm here.txt && mkdir here.txt && touch here.txt/x" });
    });
    const result = await run(raced, { kind: "patch", diff });
    expect(result.outcome).toMatchObject({
      kind: "refused",
      message: expect.stringMatching(/nothing was changed$/),
    });
    expect(await text(sandbox, "src/a.txt")).toBe("above\nkeep\nold\n");
    expect(await text(sandbox, "gone.txt")).toBe("bye\n");
    expect(await names(sandbox)).toEqual(["gone.txt", "here.txt", "here.txt/x", "src", "src/a.txt", "sub"]);
  });

  test("patch that is aborted half way takes back what it had done", async ({ host }) => {
    const sandbox = await host.sandbox();
    await ready(sandbox);
    const controller = new AbortController();
    const raced = before(sandbox, "write", async (path) => {
      if (path === "made.sh") controller.abort("stop");
    });
    const result = await run(raced, { kind: "patch", diff }, { signal: controller.signal });
    expect(result.outcome).toEqual({ kind: "cancelled", reason: "stop" });
    expect(await text(sandbox, "src/a.txt")).toBe("above\nkeep\nold\n");
    expect(await names(sandbox)).toEqual(["gone.txt", "here.txt", "src", "src/a.txt"]);
  });

  test("patch cannot name a file outside the workspace", async ({ host }) => {
    const sandbox = await host.sandbox();
    for (const path of ["../x", "/etc/x"]) {
      const outside = `--- /dev/null\n+++ ${path}\n@@ -0,0 +1 @@\n+x\n`;
      expect((await run(sandbox, { kind: "patch", diff: outside })).outcome).toMatchObject({
        code: "patch-failed",
        message: expect.stringMatching(/invalid path/),
      });
    }
  });
});
