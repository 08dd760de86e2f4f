import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const program = fileURLToPath(new URL("../src/main.ts", import.meta.url));
const profiles = new URL("../src/door/client-profiles.ts", import.meta.url).href;
/** No passwd entry has it. */
const uid = 54_321;

function asUnnamed(...args: string[]) {
  const { PATH = "" } = process.env;
  return spawnSync(process.execPath, args, { uid, gid: uid, env: { PATH }, encoding: "utf8" });
}

const isRoot = process.getuid?.() === 0;
const reads = `require("node:fs").accessSync(${JSON.stringify(program)})`;

describe.skipIf(!isRoot || asUnnamed("-e", reads).status !== 0)("user without a passwd entry", () => {
  test("berth runs for a user without a home directory and without a passwd entry", () => {
    expect(asUnnamed("-p", "try { os.homedir() } catch { 'none' }").stdout).toBe("none\n");
    const { status, stdout, stderr } = asUnnamed("--conditions=@berth/source", program, "version");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(/\d+\.\d+\.\d+/);
  });

  test("a change by a user without a passwd entry is recorded under the user's number", () => {
    const prints = `import { actor } from ${JSON.stringify(profiles)}; console.log(actor());`;
    const options = ["--conditions=@berth/source", "--input-type=module", "-e", prints];
    const { status, stdout, stderr } = asUnnamed(...options);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(new RegExp(`^${uid}@\\S+\n$`));
  });
});
