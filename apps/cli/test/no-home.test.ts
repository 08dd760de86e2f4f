import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const program = fileURLToPath(new URL("../src/main.ts", import.meta.url));
/** No passwd entry has it. */
const uid = 54_321;

function asNobody(...args: string[]) {
  const { PATH = "" } = process.env;
  return spawnSync(process.execPath, args, { uid, gid: uid, env: { PATH }, encoding: "utf8" });
}

const mayBe = process.getuid?.() === 0;
const reads = `require("node:fs").accessSync(${JSON.stringify(program)})`;

test.skipIf(!mayBe || asNobody("-e", reads).status !== 0)(
  "berth runs for a user without a home directory and without a passwd entry",
  () => {
    expect(asNobody("-p", "try { os.homedir() } catch { 'none' }").stdout).toBe("none\n");
    const { status, stdout, stderr } = asNobody("--conditions=@berth/source", program, "version");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(/\d+\.\d+\.\d+/);
  },
);
