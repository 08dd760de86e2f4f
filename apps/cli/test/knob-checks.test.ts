import { expect, test } from "vitest";
import { hasIoWeight, unthrottled } from "../src/doctor/engine-checks.ts";
import { type EngineFacts, knobs } from "../src/doctor/knob-checks.ts";

const able: EngineFacts = {
  securityOptions: ["name=apparmor", "name=seccomp,profile=builtin"],
  runtimes: ["runc", "nvidia"],
  swapLimit: true,
  ioWeight: true,
  unthrottled: [],
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

test("doctor reads what an engine warns of the disk, in the words of cgroup v2 and of cgroup v1", () => {
  // As Docker 25 says it on cgroup v2.
  const v2 = [
    "WARNING: No cpuset support",
    "WARNING: No io.weight support",
    "WARNING: No io.weight (per device) support",
    "WARNING: No io.max (rbps) support",
    "WARNING: No io.max (wbps) support",
    "WARNING: No io.max (riops) support",
    "WARNING: No io.max (wiops) support",
    "WARNING: bridge-nf-call-iptables is disabled",
  ];
  // As Docker 20.10 and 19.03 do.
  const v1 = [
    "WARNING: No blkio weight support",
    "WARNING: No blkio weight_device support",
    "WARNING: No blkio throttle.read_bps_device support",
    "WARNING: No blkio throttle.write_bps_device support",
    "WARNING: No blkio throttle.read_iops_device support",
    "WARNING: No blkio throttle.write_iops_device support",
  ];
  const all = [
    "diskReadBytesPerSecond",
    "diskWriteBytesPerSecond",
    "diskReadsPerSecond",
    "diskWritesPerSecond",
  ];
  for (const warnings of [v1, v2]) {
    expect(hasIoWeight(warnings)).toBe(false);
    expect(unthrottled(warnings)).toEqual(all);
  }
  // A weight of each device is another thing.
  const some = ["WARNING: No io.weight (per device) support", "WARNING: No io.max (wiops) support"];
  expect(hasIoWeight(some)).toBe(hasIoWeight([]));
  expect(unthrottled(some)).toEqual(["diskWritesPerSecond"]);
  const [found] = findings({ ioWeight: false, unthrottled: ["diskWritesPerSecond"] });
  expect(found?.text).toMatch(/`ioWeight` .*`limits.diskWritesPerSecond` \(the kernel/);
});
