import type { JobSandbox } from "@berth/jobs";
import { Fault } from "@berth/protocol";
import type { SandboxFiles } from "@berth/sandbox";
import { LeaseOver } from "@berth/tenancy";
import { describe, expect, test } from "vitest";
import { checkedSandbox } from "../src/checked-sandbox.ts";

const refused = { outcome: { kind: "refused", code: "lease-over", message: "" } };
const exited = { outcome: { kind: "exited", code: 0 } };

/** A sandbox whose commands end so, one after the other, and whose files do as asked. */
function sandboxOf(ends: readonly object[], files: Partial<SandboxFiles> = {}): JobSandbox {
  const left = [...ends];
  return { exec: async () => left.shift(), files } as unknown as JobSandbox;
}

const touched = (error: unknown) => (error instanceof LeaseOver ? error.touched : "another error");
const command = { command: "true" };

describe("sandbox that takes nothing more because its lease is over", () => {
  test("a job whose first command was refused after the lease ended did not touch the sandbox", async () => {
    const files = { list: async () => ({ items: [], truncated: false }) };
    const sandbox = checkedSandbox(sandboxOf([refused], files), () => {});
    await sandbox.files.list("");
    expect(await sandbox.exec(command).catch(touched)).toBe(false);
  });

  test("a job of which the sandbox had taken a command or a file change touched the sandbox", async () => {
    const later = checkedSandbox(sandboxOf([exited, refused]), () => {});
    await later.exec(command);
    expect(await later.exec(command).catch(touched)).toBe(true);
    const files = { remove: async () => Promise.reject(new Error("whatever became of it")) };
    const changed = checkedSandbox(sandboxOf([refused], files), () => {});
    await changed.files.remove("f").catch(() => {});
    expect(await changed.exec(command).catch(touched)).toBe(true);
  });

  test("a job whose first file change was refused after the lease ended did not touch the sandbox", async () => {
    const context = { operation: "write", code: "lease-over", detail: "" };
    const write = async () => Promise.reject(new Fault("file-operation-failed", context));
    const sandbox = checkedSandbox(sandboxOf([], { write }), () => {});
    expect(await sandbox.files.write("f", "x").catch(touched)).toBe(false);
  });
});
