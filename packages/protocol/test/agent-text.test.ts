import { describe, expect, test } from "vitest";
import { agentText, byteSize, type KeptOutput, type Outcome } from "../src/index.ts";

const shownBytes = 32 * 1024;

function output(text: string, more: Partial<KeptOutput> = {}): KeptOutput {
  const bytes = Buffer.from(text);
  const head = bytes.length === 0 ? [] : [{ stream: "stdout" as const, bytes }];
  return { head, tail: [], cutBytes: 0, totalBytes: bytes.length, ...more };
}

function text(outcome: Outcome, kept: KeptOutput = output("")): string {
  return agentText({ outcome, output: kept }, { shownBytes });
}

describe("the agent's text of a result", () => {
  test("success is the output and nothing else", () => {
    expect(text({ kind: "exited", code: 0 }, output("42\n"))).toBe("42\n");
    expect(text({ kind: "exited", code: 0 })).toBe("");
  });

  test("a failure ends with its exit code on a line of its own", () => {
    expect(text({ kind: "exited", code: 2 }, output("no newline"))).toBe("no newline\n[exit 2]");
    expect(text({ kind: "exited", code: 2 }, output("newline\n"))).toBe("newline\n[exit 2]");
    expect(text({ kind: "exited", code: 2 })).toBe("[exit 2]");
  });

  test("a timeout names its seconds and exit 124", () => {
    expect(text({ kind: "timed-out", afterMs: 30_000 }, output("half"))).toBe(
      "half\n[timed out after 30s]\n[exit 124]",
    );
    expect(text({ kind: "timed-out", afterMs: 250 })).toBe("[timed out after 0.25s]\n[exit 124]");
  });

  test("out of memory names the limit and exit 137", () => {
    expect(text({ kind: "out-of-memory", limitBytes: 512 * 1024 * 1024 })).toBe(
      "[out of memory: the limit is 512 MB]\n[exit 137]",
    );
  });

  test("a signal is named and has the shell's exit code", () => {
    expect(text({ kind: "signalled", signal: 11 })).toBe("[killed by SIGSEGV]\n[exit 139]");
    expect(text({ kind: "signalled", signal: 35 })).toBe("[killed by signal 35]\n[exit 163]");
  });

  test("each cause that stopped a command has its own line", () => {
    expect(text({ kind: "quota-exceeded", limit: 1024 ** 3, used: 1.5 * 1024 ** 3, unit: "bytes" })).toBe(
      "[stopped: workspace quota exceeded (1 GB); used 1.5 GB]\n[exit 153]",
    );
    expect(text({ kind: "quota-exceeded", limit: 10, used: 12, unit: "entries" })).toBe(
      "[stopped: workspace quota exceeded (10 files); used 12 files]\n[exit 153]",
    );
    expect(text({ kind: "output-limit", limitBytes: 1024 })).toBe(
      "[stopped: more than 1 KB of output]\n[exit 141]",
    );
    expect(text({ kind: "cancelled", reason: "by its caller" })).toBe(
      "[cancelled: by its caller]\n[exit 130]",
    );
  });

  test("a command that never ran, or whose end is unknown, is an ERR line without an exit code", () => {
    expect(text({ kind: "refused", code: "invalid-path", message: "invalid path: it is absolute" })).toBe(
      "ERR: invalid path: it is absolute",
    );
    expect(text({ kind: "lost", message: "the worker died" })).toBe("ERR: the worker died");
  });

  test("long output keeps its head and its tail and counts what is between", () => {
    const long = `${"a".repeat(40_000)}\n${"z".repeat(40_000)}`;
    const shown = text({ kind: "exited", code: 0 }, output(long));
    expect(shown.startsWith("aaaa")).toBe(true);
    expect(shown.endsWith("zzzz")).toBe(true);
    expect(shown).toContain(`...[output truncated: ${80_001 - shownBytes} of 80001 bytes cut]...`);
    expect(Buffer.byteLength(shown)).toBeLessThan(shownBytes + 100);
  });

  test("output that was already cut when kept shows its total size", () => {
    const kept = output("start\n", {
      tail: [{ stream: "stderr", bytes: Buffer.from("end\n") }],
      cutBytes: 1_000_000,
      totalBytes: 1_000_010,
    });
    expect(text({ kind: "exited", code: 0 }, kept)).toBe(
      "start\n...[output truncated: 1000000 of 1000010 bytes cut]...\nend\n",
    );
  });

  test("long output of which only the start shows loses its end, and says how much", () => {
    const start = { shows: "start" } as const;
    const shown = text({ kind: "exited", code: 1 }, output("a".repeat(shownBytes + 10), start));
    const note = `...[output truncated: 10 of ${shownBytes + 10} bytes cut]...`;
    expect(shown).toBe(`${"a".repeat(shownBytes)}\n${note}\n[exit 1]`);
    const cut = output("start\n", { ...start, cutBytes: 100, totalBytes: 106 });
    expect(text({ kind: "exited", code: 0 }, cut)).toBe(
      "start\n...[output truncated: 100 of 106 bytes cut]...",
    );
    expect(text({ kind: "exited", code: 0 }, output("short\n", start))).toBe("short\n");
    expect(text({ kind: "exited", code: 0 }, output("€".repeat(20_000), start))).not.toContain("\uFFFD");
  });

  test("a cut never splits a character", () => {
    const shown = text({ kind: "exited", code: 0 }, output("€".repeat(20_000)));
    expect(shown).not.toContain("\uFFFD");
    expect(shown.startsWith("€€")).toBe(true);
    expect(shown.endsWith("€€")).toBe(true);
  });

  test("sizes are shown as people write them", () => {
    expect([0, 1023, 1024, 1536, 1024 ** 2, 1024 ** 3 * 2].map(byteSize)).toEqual([
      "0 bytes",
      "1023 bytes",
      "1 KB",
      "1.5 KB",
      "1 MB",
      "2 GB",
    ]);
  });
});
