import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

const module = new URL("../src/interrupts.ts", import.meta.url);

function runScript(script: string) {
  const source = `import { Interrupts } from ${JSON.stringify(module.href)};
    const interrupts = new Interrupts();
    interrupts.signal();
    ${script}`;
  const args = ["--conditions=@berth/source", "--input-type=module-typescript", "-e", source];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
  return { status, stdout };
}

test("a signal that a process group gets, and a parent passes on again, counts as one", () => {
  const script = `process.emit("SIGINT"); process.emit("SIGINT"); console.log(interrupts.interrupted); process.exit(7);`;
  expect(runScript(script)).toEqual({ status: 7, stdout: "true\n" });
});

test("a second signal that comes later ends the program at once", () => {
  const script = `process.emit("SIGINT");
    setTimeout(() => { process.emit("SIGINT"); console.log("still here"); process.exit(7); }, 700);`;
  expect(runScript(script)).toEqual({ status: 130, stdout: "" });
});

test("the end of the process that started the program is a hang-up", () => {
  const script = `process.emit("disconnect"); console.log(interrupts.interrupted, interrupts.exitCode); process.exit(7);`;
  expect(runScript(script)).toEqual({ status: 7, stdout: "true 129\n" });
});

test("the end of the process that started the program does not hurry one that is stopping", () => {
  const script = `process.emit("SIGTERM");
    setTimeout(() => { process.emit("disconnect"); console.log(interrupts.exitCode); process.exit(7); }, 700);`;
  expect(runScript(script)).toEqual({ status: 7, stdout: "143\n" });
});
