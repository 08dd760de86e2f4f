import { expect, test } from "vitest";
import { type EngineFacts, knobs } from "../src/doctor/knob-checks.ts";

const able: EngineFacts = {
  securityOptions: ["name=apparmor", "name=seccomp,profile=builtin"],
  runtimes: ["runc", "nvidia"],
  swapLimit: true,
  driver: "overlay2",
  backingFilesystem: "xfs",
};
const told = (facts: Partial<EngineFacts>) => [...knobs({ ...able, ...facts })];

test("doctor names the fields of a profile that this engine does not enforce, and why", () => {
  expect(told({})).toMatchObject([{ state: "ok" }]);
  const [found] = told({
    ...{ securityOptions: ["name=seccomp,profile=builtin"], runtimes: ["runc"], swapLimit: false },
    backingFilesystem: "extfs",
  });
  expect(found?.state).toBe("warn");
  expect(found?.text).toMatch(/`apparmor` .*`limits.swapBytes` .*`readOnlyRoot=false` .*extfs.*`gpus` /);
  expect(told({ driver: "btrfs", backingFilesystem: undefined })).toMatchObject([{ state: "ok" }]);
});
