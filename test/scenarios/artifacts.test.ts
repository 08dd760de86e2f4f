import { createHash } from "node:crypto";
import { once } from "node:events";
import type { ArtifactRef, JobRequestInput } from "@berth/protocol";
import { describe, expect } from "vitest";
import { paths, refused, run, type TestStore, test } from "../support/artifacts.ts";
import { before } from "../support/gated-sandbox.ts";

async function text({ store }: TestStore, ref: ArtifactRef | undefined): Promise<string | undefined> {
  return (await store.reader.bytes(ref?.id ?? ""))?.toString();
}

describe("command's artifacts", () => {
  test("a command's artifacts are the files its globs name, with size, hash and type", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    const seen: ArtifactRef[] = [];
    const result = await run(
      artifacts,
      sandbox,
      {
        kind: "exec",
        command: "mkdir -p out/deep; echo '{}' > out/a.json; printf hi > out/deep/b.txt; echo no > c.txt",
        artifacts: ["out/**", "/workspace/*.nothing"],
      },
      { onArtifact: (artifact) => void seen.push(artifact) },
    );
    expect(result).toMatchObject({ outcome: { kind: "exited", code: 0 } });
    expect(result.value.artifacts).toEqual([
      expect.objectContaining({ path: "out/a.json", size: 3, mime: "application/json" }),
      expect.objectContaining({
        path: "out/deep/b.txt",
        size: 2,
        mime: "text/plain",
        sha256: createHash("sha256").update("hi").digest("hex"),
      }),
    ]);
    expect(result.value.artifactsRefused).toBeUndefined();
    expect(seen.toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual(result.value.artifacts);
    expect(await text(artifacts, result.value.artifacts?.[1])).toBe("hi");
  });

  test("a command's artifacts are kept however it ended, so that a failure can be looked into", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    const failed = await run(artifacts, sandbox, {
      kind: "exec",
      command: "echo why > fail.log; exit 3",
      artifacts: ["*.log"],
    });
    expect(failed.outcome).toEqual({ kind: "exited", code: 3 });
    expect(paths(failed)).toEqual(["fail.log"]);
    const slow = await run(artifacts, sandbox, {
      kind: "exec",
      command: "echo why > slow.log; sleep 60",
      artifacts: ["slow.log"],
      limits: { timeoutMs: 1_000 },
    });
    expect(slow.outcome).toMatchObject({ kind: "timed-out" });
    expect(paths(slow)).toEqual(["slow.log"]);
  });

  test("a command's artifacts are also what it leaves in artifacts/ beside it, when it names any", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    const command = "mkdir -p artifacts; echo 1 > artifacts/one; echo 2 > two";
    expect(paths(await run(artifacts, sandbox, { kind: "exec", command }))).toEqual([]);
    const naming = { kind: "exec", command, artifacts: ["two"] } satisfies JobRequestInput;
    await sandbox.exec({ command: "rm -r artifacts" });
    expect(paths(await run(artifacts, sandbox, naming))).toEqual(["artifacts/one", "two"]);
  });

  test("a command's artifacts are large as well, and come out as they were", async ({ host, artifacts }) => {
    const sandbox = await host.sandbox();
    const command = "head -c 20000000 /dev/urandom > big; sha256sum big | cut -d' ' -f1";
    const result = await run(artifacts, sandbox, { kind: "exec", command, artifacts: ["big"] });
    const [ref] = result.value.artifacts ?? [];
    expect(ref).toMatchObject({ size: 20_000_000, sha256: result.value.stdout?.trim() });
    expect(await artifacts.store.reader.bytes(ref?.id ?? "")).toHaveLength(20_000_000);
  });

  test("an invalid artifact pattern does not change how a command ended", async ({ host, artifacts }) => {
    const sandbox = await host.sandbox();
    const result = await run(artifacts, sandbox, { kind: "exec", command: "true", artifacts: ["../*"] });
    expect(result.outcome).toEqual({ kind: "exited", code: 0 });
    expect(result.value.artifactsRefusedCount).toBe(1);
  });
});

describe("code's artifacts", () => {
  const source = "import os\nos.makedirs('artifacts/sub', exist_ok=True)\n";

  test("code's artifacts are what it leaves in artifacts/ of its own directory", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.write("app/artifacts/old", "from before");
    await sandbox.files.write("artifacts/elsewhere", "from before");
    const result = await run(artifacts, sandbox, {
      kind: "code",
      language: "python",
      source: `${source}open('artifacts/plot.svg', 'w').write('<svg/>'); open('artifacts/sub/t.csv', 'w').write('a,b')`,
      cwd: "app",
    });
    expect(result.value.artifacts).toEqual([
      expect.objectContaining({ path: "app/artifacts/plot.svg", mime: "image/svg+xml" }),
      expect.objectContaining({ path: "app/artifacts/sub/t.csv", mime: "text/csv" }),
    ]);
  });

  test("artifacts of a code job are found by comparing listings, with any times of the files", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.write("artifacts/same", "1");
    await sandbox.files.write("artifacts/changed", "1");
    const result = await run(artifacts, sandbox, {
      kind: "code",
      language: "sh",
      source: "touch -d '2001-01-01' old; cp -p old artifacts/copied; printf 22 > artifacts/changed",
    });
    expect(paths(result)).toEqual(["artifacts/changed", "artifacts/copied"]);
    const named = {
      kind: "code",
      language: "sh",
      source: "",
      artifacts: ["artifacts/same"],
    } satisfies JobRequestInput;
    expect(paths(await run(artifacts, sandbox, named)), "named, though unchanged").toEqual([
      "artifacts/same",
    ]);
  });

  test("code's artifacts are none when there is no such directory, or it is a file", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    const code = { kind: "code", language: "sh", source: "echo x > artifacts" } as const;
    for (const _ of ["no directory", "a file"]) {
      const { value } = await run(artifacts, sandbox, code);
      expect(value).toEqual({ stdout: "", stderr: "", cutBytes: 0 });
    }
  });
});

describe("steps", () => {
  test("steps each have their own artifacts, also of the same path", async ({ host, artifacts }) => {
    const sandbox = await host.sandbox();
    const step = (content: string) =>
      ({ kind: "exec", command: `echo ${content} > out`, artifacts: ["out"] }) satisfies JobRequestInput;
    const result = await run(artifacts, sandbox, { kind: "steps", steps: [step("one"), step("two")] });
    const refs = result.value.steps?.map(({ value }) => value.artifacts?.[0]) ?? [];
    expect(await text(artifacts, refs[0])).toBe("one\n");
    expect(await text(artifacts, refs[1])).toBe("two\n");
  });

  test("steps share one job's limit", async ({ host, artifacts }) => {
    const sandbox = await host.sandbox();
    const step = { kind: "exec", command: "touch a b", artifacts: ["*"] } satisfies JobRequestInput;
    const few = artifacts.with({ maxPerJob: 3 });
    const result = await run(few, sandbox, { kind: "steps", steps: [step, step] });
    expect(result.value.steps?.map(paths)).toEqual([["a", "b"], ["a"]]);
    expect(result.value.steps?.map(refused)).toEqual([{}, { b: "too-many" }]);
  });
});

test("hundreds of small files are kept, and one that cannot be read does not keep the others out", async ({
  host,
  artifacts,
}) => {
  const sandbox = await host.sandbox();
  const roomy = artifacts.with({ maxPerJob: 1_000 });
  const command = "mkdir artifacts; cd artifacts; for f in $(seq 300); do echo $f > $f; done; chmod 0 7";
  const result = await run(roomy, sandbox, {
    kind: "exec",
    command,
    artifacts: ["artifacts/*"],
  });
  expect(result.value.artifacts).toHaveLength(299);
  expect(refused(result)).toEqual({ "artifacts/7": "unreadable" });
  const last = result.value.artifacts?.find(({ path }) => path === "artifacts/300");
  expect(await text(roomy, last)).toBe("300\n");
});

describe("when something ends meanwhile", () => {
  test("a cancelled job reports its outcome and what it had kept", async ({ host, artifacts }) => {
    const sandbox = await host.sandbox();
    const controller = new AbortController();
    const cancelling = before(sandbox, "read", async (path) => {
      if (path === "e") controller.abort("enough");
    });
    const result = await run(
      artifacts,
      cancelling,
      // Too large to be read together.
      {
        kind: "exec",
        command: "for f in a b c d e f g h; do head -c 70000 /dev/zero > $f; done",
        artifacts: ["?"],
      },
      { signal: controller.signal },
    );
    expect(result.outcome).toEqual({ kind: "exited", code: 0 });
    expect(paths(result).length + (result.value.artifactsRefusedCount ?? 0)).toBe(8);
    expect(paths(result)).not.toContain("h");
    expect(result.value.artifactsRefused?.at(-1)?.reason).toBe("cancelled: enough");
  });

  test("a sandbox that dies loses its files, not its command's result", async ({ host, artifacts }) => {
    const sandbox = await host.sandbox();
    const dying = before(sandbox, "read", () => sandbox.stop());
    const result = await run(artifacts, dying, {
      kind: "exec",
      command: "echo done; echo x > f",
      artifacts: ["f"],
    });
    expect(result).toMatchObject({ outcome: { kind: "exited", code: 0 }, value: { stdout: "done\n" } });
    expect(refused(result)).toEqual({ f: "not-kept" });
  });

  test("a store that fails does not fail the command", async ({ host, artifacts }) => {
    const sandbox = await host.sandbox();
    const cut = before(sandbox, "read", async () => {
      const ended = once(artifacts.redis, "end");
      artifacts.redis.disconnect();
      await ended;
    });
    const request = { kind: "exec", command: "echo x > f", artifacts: ["f"] } satisfies JobRequestInput;
    const result = await run(artifacts, cut, request);
    expect(result.outcome).toEqual({ kind: "exited", code: 0 });
    expect(refused(result)).toEqual({ f: "not-kept" });
  });

  test("without an artifact store the globs of a job are refused and nothing else changes", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    const request = { kind: "exec", command: "touch f", artifacts: ["f"] } satisfies JobRequestInput;
    const result = await run(artifacts, sandbox, request, { artifacts: undefined });
    expect(result.outcome).toEqual({ kind: "exited", code: 0 });
    expect(refused(result)).toEqual({ f: "not-kept" });
  });
});
