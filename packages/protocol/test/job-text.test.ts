import { describe, expect, test } from "vitest";
import { execBlock, type StoredResult, withText } from "../src/index.ts";

const timing = { wallMs: 1, cpuMs: 1 };
const exited = (code: number, value: StoredResult["value"]): StoredResult => ({
  outcome: { kind: "exited", code },
  value,
  timing,
});

describe("text of a result that is read", () => {
  test("the text of a result is the output, followed by how the command ended", () => {
    expect(withText(exited(0, { stdout: "42\n", stderr: "" })).text).toBe("42\n");
    expect(withText(exited(3, { stdout: "", stderr: "oops" })).text).toBe("oops\n[exit 3]");
  });

  test("the text of a result has both streams in the order of arrival, which the value does not keep", () => {
    const result = withText(exited(1, { stdout: "a\nc\n", stderr: "b\n", shown: "a\nb\nc\n" }));
    expect(result).toEqual({
      ...exited(1, { stdout: "a\nc\n", stderr: "b\n" }),
      text: "a\nb\nc\n[exit 1]",
    });
  });

  test("the text of a refused job of any kind is one ERR line", () => {
    const outcome = { kind: "refused", code: "not-found", message: "no such file: a" } as const;
    expect(withText({ outcome, value: {}, timing }).text).toBe("ERR: no such file: a");
    expect(withText({ outcome: { kind: "done" }, value: { size: 1 }, timing })).not.toHaveProperty("text");
  });

  test("a result with steps has a text for each step, and none for the whole", () => {
    const whole = withText({ ...exited(7, { steps: [exited(7, { stdout: "x" })] }) });
    expect(whole.text).toBeUndefined();
    expect(whole.value.steps?.[0]?.text).toBe("x\n[exit 7]");
  });
});

test("a block frames the text, whether or not it ends its last line", () => {
  expect(execBlock("ls -la", "total 8\n")).toBe("[/exec ls -la]\ntotal 8\n[END EXEC]");
  expect(execBlock("cat a", "ERR: no such file")).toBe("[/exec cat a]\nERR: no such file\n[END EXEC]");
  expect(execBlock("true", "")).toBe("[/exec true]\n[END EXEC]");
  expect(execBlock("cat <<E\na\nE", "a")).toBe("[/exec cat <<E …]\na\n[END EXEC]");
});
