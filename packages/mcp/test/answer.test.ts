import type { JobResult, KeptOutput } from "@berth/protocol";
import { describe, expect, test } from "vitest";
import { answerShape, endedAnswer, failedAnswer, shownBytes, unfinishedAnswer } from "../src/answer.ts";
import { GatheredOutput } from "../src/gathered-output.ts";

const timing = { wallMs: 1, cpuMs: 1 };

function output(text: string): KeptOutput {
  const gathered = new GatheredOutput(shownBytes);
  gathered.add("stdout", Buffer.from(text));
  return gathered.kept;
}

function ended(result: Omit<JobResult, "timing">, text = "") {
  const answer = endedAnswer("j1", { ...result, timing }, output(text));
  const [first] = answer.content;
  return { ...answer, text: first?.type === "text" ? first.text : "" };
}

describe("the answer to a job that has ended", () => {
  test("a command that ended by itself is no error, with any exit code", () => {
    const answer = ended({ outcome: { kind: "exited", code: 2 }, value: {} }, "out\n");
    expect(answer).toMatchObject({ text: "out\n[exit 2]", isError: false });
    expect(answer.structuredContent).toEqual({
      job: "j1",
      state: "finished",
      outcome: { kind: "exited", code: 2 },
      exit_code: 2,
      output: "out\n[exit 2]",
    });
  });

  test("a command without output is answered with (no output)", () => {
    expect(ended({ outcome: { kind: "exited", code: 0 }, value: {} }).text).toBe("(no output)");
  });

  test.for([
    [{ kind: "timed-out", afterMs: 1_000 }, "[timed out after 1s]\n[exit 124]"],
    [{ kind: "out-of-memory", limitBytes: 1024 }, "[out of memory: the limit is 1 KB]\n[exit 137]"],
    [{ kind: "cancelled", reason: "asked" }, "[cancelled: asked]\n[exit 130]"],
    [{ kind: "refused", code: "not-found", message: "no such file" }, "ERR: no such file"],
    [
      { kind: "lost", message: "the worker died" },
      "ERR: the worker died\nBerth does not know whether it ran; check before you repeat it",
    ],
  ] as const)("a job that ended as $0.kind is an error with a sentence", ([outcome, text]) => {
    expect(ended({ outcome, value: {} })).toMatchObject({
      text,
      isError: true,
      structuredContent: { outcome },
    });
  });

  test("the answer to a file operation shows its findings as lines", () => {
    const done = { kind: "done" } as const;
    const entry = { size: 3, mode: 0o644, modifiedMs: 0 };
    const entries = [
      { ...entry, path: "d", type: "directory" },
      { ...entry, path: "f", type: "file" },
      { ...entry, path: "l", type: "symlink", target: "f" },
    ] as const;
    expect(ended({ outcome: done, value: { entries, truncated: true } }).text).toBe(
      "d/\nf (3 bytes)\nl -> f\n[there is more; narrow it down, or raise limit]",
    );
    const matches = [{ path: "f", line: 7, text: "hit", cut: true }];
    expect(ended({ outcome: done, value: { matches } }).text).toBe("f:7:hit …");
    expect(ended({ outcome: done, value: { matches: [] } }).text).toBe("no matches");
    expect(ended({ outcome: done, value: { created: true, size: 5 } }).text).toBe("created, 5 bytes");
    const window = { content: "a\n", lines: { first: 4, last: 4, more: true } };
    expect(ended({ outcome: done, value: window }).text).toContain("go on with offset 5");
    expect(ended({ outcome: done, value: { content: "", encoding: "utf8" } }).text).toBe(
      "(the file is empty)",
    );
  });

  test("a file is shown as an image only when all bytes of an image are there", () => {
    const bytes = Buffer.from("89504e470d0a1a0a00", "hex");
    const read = (content: Buffer, size = content.length) =>
      endedAnswer(
        "j1",
        {
          outcome: { kind: "done" },
          value: { content: content.toString("base64"), encoding: "base64", size },
          timing,
        },
        output(""),
      );
    expect(read(bytes).content).toEqual([
      { type: "image", mimeType: "image/png", data: bytes.toString("base64") },
    ]);
    expect(read(Buffer.from("#!/bin/sh"))).toMatchObject({ isError: true });
    expect(read(bytes, 5_000_000)).toMatchObject({ isError: true });
  });

  test("the answer links to each artifact", () => {
    const artifact = {
      id: "a".repeat(32),
      path: "out/plot.png",
      size: 9,
      sha256: "0".repeat(64),
      mime: "image/png",
      expiresAtMs: 1,
    };
    const answer = ended({ outcome: { kind: "exited", code: 0 }, value: { artifacts: [artifact] } });
    expect(answer.content[1]).toEqual({
      type: "resource_link",
      uri: `berth://artifact/${artifact.id}`,
      name: "out/plot.png",
      mimeType: "image/png",
      size: 9,
    });
  });

  test("the answer cuts a long file in the middle", () => {
    const content = "x".repeat(10 * shownBytes);
    const { text } = ended({ outcome: { kind: "done" }, value: { content } });
    expect(text.length).toBeLessThan(shownBytes + 200);
    expect(text).toContain("output truncated");
  });
});

test("an answer to a job that goes on names its id and what to do", () => {
  const answer = unfinishedAnswer("j1", "running", { output: output("so far"), after: "5-0" });
  expect(answer.structuredContent).toMatchObject({ job: "j1", state: "running", after: "5-0" });
  expect(answer.content).toEqual([
    {
      type: "text",
      text: "so far\n[still running as job j1; call the tool job with id j1 and after 5-0 to go on, or with action cancel to end it]",
    },
  ]);
});

test("the answer to a failure has its code and what to do about it", () => {
  const answer = failedAnswer({ message: "Redis is away", code: "redis-unreachable", advice: ["try again"] });
  expect(answer).toMatchObject({
    isError: true,
    content: [{ text: "ERR: Redis is away [redis-unreachable]\ntry again" }],
    structuredContent: { state: "failed", code: "redis-unreachable" },
  });
  expect(answerShape.parse(answer.structuredContent)).toEqual(answer.structuredContent);
});

test("gathered output keeps the beginning and the end, and counts what it left out", () => {
  const gathered = new GatheredOutput(10);
  for (let at = 0; at < 100; at++)
    gathered.add(at % 2 === 0 ? "stdout" : "stderr", Buffer.from(`${at % 10}ab`));
  const { head, tail, cutBytes, totalBytes } = gathered.kept;
  const text = (chunks: KeptOutput["head"]) =>
    chunks.map(({ bytes }) => Buffer.from(bytes).toString()).join("");
  expect([text(head), text(tail), cutBytes, totalBytes]).toEqual(["0ab1a", "ab9ab", 290, 300]);
});
