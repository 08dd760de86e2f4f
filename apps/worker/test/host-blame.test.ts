import { Fault } from "@berth/protocol";
import { expect, test } from "vitest";
import { blamesHost } from "../src/host-blame.ts";

const own = {
  ...{ image: "berth-sandbox:bookworm", network: "sandboxes" },
  ...{ runtime: "runsc", seccomp: "/etc/berth/seccomp.json" },
};
const unmet = (field: string, value: string) => new Fault("profile-unmet", { field, value, detail: "no" });

test("a failed start is not blamed on the host when only its profile names what is missing", () => {
  const ofProfile = [
    new Fault("mount-refused", { mount: "data", detail: "it is not there" }),
    new Fault("egress-unavailable", { detail: "its network is bridge" }),
    new Fault("image-missing", { image: "bookwrm", detail: "no such image" }),
    new Fault("runtime-missing", { runtime: "kata", available: "runc" }),
    new Fault("seccomp-unusable", { path: "/mistyped.json", detail: "ENOENT" }),
    unmet("network", "sandbxes"),
    unmet("gpus", "all"),
    new Fault("tied-elsewhere", { sandboxKey: "acme", shared: "tools", host: "other" }),
    new Fault("not-granted", { what: "image", name: "a", tenant: "acme" }),
    new Error("no fault"),
  ];
  expect(ofProfile.filter((error) => blamesHost(error, own))).toEqual([]);
});

test("a failed start is blamed on the host when the worker's own variables name what is missing, or the engine failed", () => {
  const ofHost = [
    new Fault("image-missing", { image: own.image, detail: "no such image" }),
    new Fault("runtime-missing", { runtime: own.runtime, available: "runc" }),
    new Fault("seccomp-unusable", { path: own.seccomp, detail: "ENOENT" }),
    unmet("network", own.network),
    new Fault("engine-unreachable", { address: "unix:///run/docker.sock", detail: "ENOENT" }),
    new Fault("sandbox-start-failed", { sandboxKey: "acme", detail: "no space left on device" }),
  ];
  expect(ofHost.every((error) => blamesHost(error, own))).toBe(true);
});
