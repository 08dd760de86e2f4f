import { expect, test } from "vitest";
import { type EngineFacts, knobs } from "../src/doctor/knob-checks.ts";

const able: EngineFacts = {
  securityOptions: ["name=apparmor", "name=seccomp,profile=builtin"],
  runtimes: ["runc", "nvidia"],
  swapLimit: true,
  ioWeight: true,
  disk: true,
  cgroupVersion: "2",
  driver: "overlay2",
  backingFilesystem: "xfs",
};
const findings = (facts: Partial<EngineFacts>) => [...knobs({ ...able, ...facts })];

test("doctor names the fields of a profile that this engine does not enforce, and why", () => {
  expect(findings({})).toMatchObject([{ state: "ok" }]);
  const [found] = findings({
    ...{ securityOptions: ["name=seccomp,profile=builtin"], runtimes: ["runc"], swapLimit: false },
    backingFilesystem: "extfs",
  });
  expect(found?.state).toBe("warn");
  expect(found?.text).toMatch(/`apparmor` .*`limits.swapBytes` .*`readOnlyRoot=false` .*extfs.*`gpus` /);
  expect(findings({ driver: "btrfs", backingFilesystem: undefined })).toMatchObject([{ state: "ok" }]);
});
