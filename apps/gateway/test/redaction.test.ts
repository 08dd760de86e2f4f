import { Fault, withText } from "@berth/protocol";
import { expect, test } from "vitest";
import { resultFor } from "../src/jobs/redaction.ts";

test("the text of a fault that a tenant sees names no path, address or program of the machines", () => {
  const { code, message } = new Fault("image-missing", {
    image: "registry.internal/secret:1",
    detail: "pull failed",
  });
  const timing = { wallMs: 0, cpuMs: 0 };
  const refused = withText({ outcome: { kind: "refused", code, message }, value: {}, timing });
  expect(resultFor({ role: "admin" }, refused).text).toContain("registry.internal");
  const shown = resultFor({ role: "tenant" }, refused);
  expect(shown.text).toMatch(/^ERR: /);
  expect(JSON.stringify(shown)).not.toContain("registry.internal");
  const steps = withText({ outcome: refused.outcome, value: { steps: [refused] }, timing });
  expect(JSON.stringify(resultFor({ role: "tenant" }, steps))).not.toContain("registry.internal");
});

test("the text of a command that a tenant sees keeps the order of both streams", () => {
  const value = { stdout: "a\nc\n", stderr: "b\n", shown: "a\nb\nc\n" };
  const ran = withText({ outcome: { kind: "exited", code: 0 }, value, timing: { wallMs: 0, cpuMs: 0 } });
  expect(resultFor({ role: "tenant" }, ran).text).toBe("a\nb\nc\n");
});
