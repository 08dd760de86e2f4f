import type { JobSandbox } from "@berth/jobs";
import { execLimits, withText } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test } from "../support/host.ts";
import { done, names, refused, run } from "../support/job-kinds.ts";

describe("exec", () => {
  test("exec gives the command's outcome, both outputs, and output as it comes", async ({ host }) => {
    const sandbox = await host.sandbox();
    const seen: string[] = [];
    const result = await run(
      sandbox,
      { kind: "exec", command: "cat; echo oops >&2; exit 3", stdin: "in\n", artifacts: ["*.txt"] },
      { onOutput: (stream, bytes) => void seen.push(`${stream}: ${Buffer.from(bytes)}`) },
    );
    expect(result).toMatchObject({
      outcome: { kind: "exited", code: 3 },
      value: { stdout: "in\n", stderr: "oops\n", cutBytes: 0 },
    });
    expect(seen.sort()).toEqual(["stderr: oops\n", "stdout: in\n"]);
  });

  test("exec is bound by the job's limits, and a request only tightens them", async ({ host }) => {
    const sandbox = await host.sandbox();
    const limits = execLimits.parse({ timeoutMs: 300, keptBytes: 1_000 });
    const slow = { kind: "exec", command: "sleep 20", limits: { timeoutMs: 20_000 } } as const;
    expect((await run(sandbox, slow, { limits })).outcome).toEqual({ kind: "timed-out", afterMs: 300 });
    const loud = await run(sandbox, { kind: "exec", command: "yes | head -c 5000" }, { limits });
    expect(loud.value).toMatchObject({ cutBytes: 4_000 });
  });

  test("exec has a text with both streams in the order they were written, cut to shownBytes", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const text = async (command: string, shownBytes: number) =>
      withText(await run(sandbox, { kind: "exec", command, limits: { shownBytes } })).text;
    // The pauses let init read one stream before the other has more.
    const apart = "echo 1; sleep 0.2; echo 2 >&2; sleep 0.2; echo 3; exit 4";
    expect(await text(apart, 1_000)).toBe("1\n2\n3\n[exit 4]");
    expect(await text("seq 100 199", 8)).toBe("100\n...[output truncated: 392 of 400 bytes cut]...\n199\n");
    const { value } = await run(sandbox, { kind: "exec", command: "echo one stream" });
    expect(value).not.toHaveProperty("shown");
  });

  test("exec with keptOutput start keeps and shows the first bytes of a long output, and none of its end", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile: { keptOutput: "start" } });
    const limits = { keptBytes: 20, shownBytes: 8 };
    const result = await run(sandbox, { kind: "exec", command: "seq 100 199; exit 2", limits });
    expect(result.value).toMatchObject({ stdout: "100\n101\n102\n103\n104\n", cutBytes: 380 });
    expect(withText(result).text).toBe("100\n101\n...[output truncated: 392 of 400 bytes cut]...\n[exit 2]");
    const short = await run(sandbox, { kind: "exec", command: "echo whole", limits });
    expect(withText(short).text).toBe("whole\n");
  });

  test("exec that is aborted is cancelled, with the reason", async ({ host }) => {
    const sandbox = await host.sandbox();
    const controller = new AbortController();
    const running = run(
      sandbox,
      { kind: "exec", command: "echo up; sleep 60" },
      { signal: controller.signal, onOutput: () => controller.abort("no longer wanted") },
    );
    expect((await running).outcome).toEqual({ kind: "cancelled", reason: "no longer wanted" });
  });
});

describe("code", () => {
  test("code runs in each language with arguments and standard input, and leaves no file", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const sources = {
      python: "import sys\nprint(sys.argv[1], sys.stdin.read())",
      bash: '[[ $1 == it* ]] && echo "$1 $(cat)"',
      sh: 'echo "$1 $(cat)"',
    } as const;
    for (const language of ["python", "bash", "sh"] as const) {
      const source = sources[language];
      const result = await run(sandbox, { kind: "code", language, source, args: ["it's $1"], stdin: "in" });
      expect(result, language).toMatchObject({
        outcome: { kind: "exited", code: 0 },
        value: { stdout: "it's $1 in\n", stderr: "" },
      });
    }
    expect(await names(sandbox)).toEqual([]);
  });

  test("code imports the modules that stand in its working directory", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.write("app/helper.py", "answer = 42");
    const result = await run(sandbox, {
      kind: "code",
      language: "python",
      source: "import helper; print(helper.answer)",
      cwd: "app",
    });
    expect(result.value.stdout).toBe("42\n");
  });

  test("code in a directory that is not there is refused, and does not make it", async ({ host }) => {
    const sandbox = await host.sandbox();
    const result = await run(sandbox, { kind: "code", language: "sh", source: "", cwd: "nowhere" });
    expect(result.outcome).toEqual(refused("not-found", /no such directory to run in: nowhere/));
    expect(await names(sandbox)).toEqual([]);
  });

  test.for([
    ["python", "print(6 * 7)"],
    ["node", "console.log(6 * 7)"],
    ["bash", "a=(6 7); echo $((a[0] * a[1]))"],
    ["sh", "echo $((6 * 7))"],
  ] as const)("the image that is used by default runs %s", async ([language, source], { host }) => {
    const result = await run(await host.sandbox(), { kind: "code", language, source });
    expect(result).toMatchObject({ outcome: { kind: "exited", code: 0 }, value: { stdout: "42\n" } });
  });

  test("code whose interpreter is not in the image is refused by name", async ({ host }) => {
    const sandbox = await host.sandbox();
    const without: JobSandbox = {
      files: sandbox.files,
      // As in an image that has no such program: the command's own PATH does not decide where init looks.
      exec: (request, options) =>
        sandbox.exec(
          request.argv !== undefined
            ? { ...request, argv: ["no-such-python", ...request.argv.slice(1)] }
            : request,
          options,
        ),
    };
    const result = await run(without, { kind: "code", language: "python", source: "" });
    expect(result.outcome).toEqual(
      refused("command-not-found", /python code needs python3, which is not in this sandbox's image/),
    );
    expect(await names(sandbox)).toEqual([]);
  });

  test("code that is aborted leaves no file either", async ({ host }) => {
    const sandbox = await host.sandbox();
    const controller = new AbortController();
    const result = await run(
      sandbox,
      { kind: "code", language: "sh", source: "echo up; sleep 60" },
      { signal: controller.signal, onOutput: () => controller.abort() },
    );
    expect(result.outcome).toMatchObject({ kind: "cancelled" });
    expect(await names(sandbox)).toEqual([]);
  });
});

describe("steps", () => {
  test("steps run in order in one job, each with its own result", async ({ host }) => {
    const sandbox = await host.sandbox();
    const result = await run(sandbox, {
      kind: "steps",
      steps: [
        { kind: "write", path: "main.py", content: "print(6 * 7)" },
        { kind: "exec", command: "python3 main.py > out; cat out" },
        { kind: "read", path: "out" },
      ],
    });
    expect(result.outcome).toEqual(done);
    expect(result.value.steps?.map(({ outcome }) => outcome.kind)).toEqual(["done", "exited", "done"]);
    expect(result.value.steps?.[2]?.value.content).toBe("42\n");
  });

  test("steps stop at the first failure, or go on, and end as it did", async ({ host }) => {
    const sandbox = await host.sandbox();
    const steps = [
      { kind: "exec", command: "exit 3" },
      { kind: "read", path: "none" },
      { kind: "write", path: "after", content: "x" },
    ] as const;
    const stopped = await run(sandbox, { kind: "steps", steps: [...steps] });
    expect(stopped.outcome).toEqual({ kind: "exited", code: 3 });
    expect(stopped.value.steps).toHaveLength(1);
    expect(await names(sandbox)).toEqual([]);
    const continued = await run(sandbox, { kind: "steps", steps: [...steps], onFailure: "continue" });
    expect(continued.outcome).toEqual({ kind: "exited", code: 3 });
    expect(continued.value.steps?.map(({ outcome }) => outcome.kind)).toEqual(["exited", "refused", "done"]);
  });

  test("steps end when they are aborted, even where failures are passed over", async ({ host }) => {
    const sandbox = await host.sandbox();
    const controller = new AbortController();
    const result = await run(
      sandbox,
      {
        kind: "steps",
        steps: [
          { kind: "exec", command: "echo up; sleep 60" },
          { kind: "write", path: "after", content: "x" },
        ],
        onFailure: "continue",
      },
      { signal: controller.signal, onOutput: () => controller.abort("enough") },
    );
    expect(result.outcome).toEqual({ kind: "cancelled", reason: "enough" });
    expect(result.value.steps).toHaveLength(1);
    expect(await names(sandbox)).toEqual([]);
  });

  test("steps do not carry more in one result than it may", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.exec({ command: "yes 0123456789 | head -c 1000000 > f" });
    const read = { kind: "read", path: "f", lines: 1_000_000 } as const;
    const result = await run(sandbox, {
      kind: "steps",
      steps: [...Array.from({ length: 12 }, () => read), { kind: "exec", command: "cat f" }],
      onFailure: "continue",
    });
    const steps = result.value.steps ?? [];
    expect(steps.slice(0, 12).map(({ outcome }) => outcome.kind)).toEqual([
      ...Array.from({ length: 8 }, () => "done"),
      ...Array.from({ length: 4 }, () => "refused"),
    ]);
    expect(steps[12]).toMatchObject({ outcome: { kind: "exited", code: 0 } });
    expect(JSON.stringify(result).length).toBeLessThan(10_000_000);
  });
});
