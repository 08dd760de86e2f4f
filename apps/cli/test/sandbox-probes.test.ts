import { expect, test } from "vitest";
import { security } from "../src/doctor/engine-checks.ts";
import { coreHelper, probesFor } from "../src/doctor/sandbox-probes.ts";

test("the probes bite: a network, an unlimited memory, a capability and root are found out", () => {
  const probes = new Map(
    probesFor({ rootless: false, ownKernel: false }).map((probe) => [probe.name, probe]),
  );
  const seen = (stdout: string) => ({ outcome: { kind: "exited", code: 0 } as const, stdout, stderr: "" });
  const network = probes.get("no network");
  expect(network?.problem(seen("Inter-|   Receive\n face |bytes\n    lo: 0 0\n"))).toBeUndefined();
  expect(network?.problem(seen("    lo: 0 0\n  eth0: 5 5\n"))).toContain("eth0");
  const memory = probes.get("the memory limit holds");
  expect(memory?.problem(seen(""))).toContain("exited");
  const rights = [...probes].find(([name]) => name.includes("no capabilities"))?.[1];
  const status =
    "Uid:\t1000\t1000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n";
  expect(rights?.problem(seen(status))).toBeUndefined();
  expect(
    rights?.problem(seen(status.replace("CapEff:\t0000000000000000", "CapEff:\t00000000a80425fb"))),
  ).toContain("CapEff");
  expect(rights?.problem(seen(status.replace("Uid:\t1000", "Uid:\t0")))).toContain("Uid");
});

test("doctor wants the container's seccomp filter and init's, where the kernel shows how many there are", () => {
  const status = (filters: string) =>
    `Uid:\t1000\nCapEff:\t0000\nCapBnd:\t0000\nNoNewPrivs:\t1\nSeccomp:\t2\n${filters}`;
  const problem = (filters: string, ownKernel = false) =>
    probesFor({ rootless: false, ownKernel })
      .find(({ name }) => name.includes("no capabilities"))
      ?.problem({ outcome: { kind: "exited", code: 0 }, stdout: status(filters), stderr: "" });
  expect(problem("Seccomp_filters:\t2\n")).toBeUndefined();
  expect(problem("Seccomp_filters:\t1\n")).toContain("Seccomp_filters is 1");
  expect(problem("")).toBeUndefined();
  expect(problem("Seccomp_filters:\t0\n", true)).toBeUndefined();
});

test("doctor does not accept an engine without seccomp; its default profile does not matter, since Berth sets its own", () => {
  const states = (option: string) => [...security([option, "name=apparmor"])].map(({ state }) => state);
  expect(states("name=seccomp,profile=unconfined")).toEqual(["ok"]);
  expect(states("name=seccomp,profile=builtin")).toEqual(["ok"]);
  expect(states("name=seccomp,profile=default")).toEqual(["ok"]);
  expect(states("name=apparmor")).toEqual(["bad"]);
});

test("doctor reports a core_pattern that runs a program, unless the hard limit of core dumps is 1", () => {
  const limits = (hard: string) =>
    `Limit  Soft Limit  Hard Limit  Units\nMax core file size        0                    ${hard}                    bytes\n`;
  const seen = (pattern: string, hard: string) => coreHelper({ stdout: `${pattern}\n${limits(hard)}` });
  expect(seen("core", "0")).toBeUndefined();
  expect(seen("|/usr/share/apport/apport -p%p", "1")).toBeUndefined();
  expect(seen("|/usr/share/apport/apport -p%p", "0")).toMatch(/apport.* hard limit of core dumps is 0/);
});
