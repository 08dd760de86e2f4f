import { expect, test } from "vitest";
import { probesFor } from "../src/doctor/sandbox-probes.ts";

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
