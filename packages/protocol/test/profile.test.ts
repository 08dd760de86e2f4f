import { describe, expect, test } from "vitest";
import { sandboxProfile, tightenLimits } from "../src/index.ts";

describe("a sandbox profile", () => {
  test("has the defaults people expect of it", () => {
    const { limits, exec, network } = sandboxProfile.parse({});
    expect(network).toBe("none");
    expect(limits).toMatchObject({
      memoryBytes: 512 * 1024 ** 2,
      cpus: 1,
      pids: 256,
      tmpfsBytes: 64 * 1024 ** 2,
    });
    expect(limits.workspaceBytes).toBe(1024 ** 3);
    expect(exec).toMatchObject({ timeoutMs: 30_000, shownBytes: 32 * 1024, keptBytes: 1024 ** 2 });
  });

  test("refuses a knob it does not know, naming it", () => {
    const parsed = sandboxProfile.safeParse({ limits: { memory: "512m" }, privileged: true });
    expect(parsed.error?.issues.map(({ message }) => message).join()).toMatch(/memory.*privileged/s);
  });

  test("can only be tightened by a job", () => {
    const { exec } = sandboxProfile.parse({});
    expect(tightenLimits(exec, { timeoutMs: 5_000 }).timeoutMs).toBe(5_000);
    expect(tightenLimits(exec, { timeoutMs: 999_999, keptBytes: undefined })).toEqual(exec);
  });
});
