import { describe, expect, test } from "vitest";
import {
  isDisabled,
  layerId,
  layerSchema,
  layers,
  profileFields,
  profileLayer,
  readSize,
  readTime,
  replaceWith,
  sandboxProfile,
  tightenBy,
  tighteningLayer,
  tightenLimits,
} from "../src/index.ts";

const base = sandboxProfile.parse({});
const problemsIn = (parsed: { error?: { issues: { message: string }[] } | undefined }) =>
  parsed.error?.issues.map(({ message }) => message).join("\n");

describe("sandbox profile", () => {
  test("a sandbox profile has the defaults people expect of it", () => {
    const { limits, exec, network, mode } = base;
    expect([network, mode]).toEqual(["none", "all"]);
    expect(limits).toMatchObject({
      memoryBytes: 512 * 1024 ** 2,
      cpus: 1,
      pids: 256,
      tmpfsBytes: 64 * 1024 ** 2,
    });
    expect(limits.workspaceBytes).toBe(1024 ** 3);
    expect(exec).toMatchObject({ timeoutMs: 30_000, shownBytes: 32 * 1024, keptBytes: 1024 ** 2 });
  });

  test("a sandbox profile with an unknown field is refused, and the message names the field", () => {
    const parsed = sandboxProfile.safeParse({ limits: { memory: "512m" }, privileged: true });
    expect(problemsIn(parsed)).toMatch(/memory.*privileged/s);
  });

  test("a sandbox profile takes sizes as 1g and times as 30s, and explains how to write others", () => {
    const { limits, exec, idleMs } = sandboxProfile.parse({
      idleMs: "2h",
      limits: { memoryBytes: "1g", workspaceBytes: "1.5GiB", cpus: "0.5" },
      exec: { timeoutMs: "90s", graceMs: 100 },
    });
    expect(limits).toMatchObject({ memoryBytes: 1024 ** 3, workspaceBytes: 1.5 * 1024 ** 3, cpus: 0.5 });
    expect([exec.timeoutMs, exec.graceMs, idleMs]).toEqual([90_000, 100, 7_200_000]);
    expect(["30", "x", "1w", "-1s"].map(readTime)).toEqual([undefined, undefined, undefined, undefined]);
    expect(["64k", "7", "1tb", "1x"].map(readSize)).toEqual([65_536, 7, 1024 ** 4, undefined]);
    const wrong = sandboxProfile.safeParse({ limits: { memoryBytes: "much" }, exec: { timeoutMs: "30" } });
    expect(problemsIn(wrong)).toContain("a size is a number of bytes, or a text such as 512m or 1g");
    expect(problemsIn(wrong)).toContain("a time is a number of milliseconds, or a text such as 30s or 5m");
  });

  test("a sandbox profile takes 0 for no cap, and nothing between 0 and what a sandbox needs", () => {
    const { limits } = sandboxProfile.parse({ limits: { memoryBytes: 0, pids: 0, workspaceBytes: 0 } });
    expect([limits.memoryBytes, limits.pids, limits.workspaceBytes]).toEqual([0, 0, 0]);
    const small = sandboxProfile.safeParse({ limits: { memoryBytes: "1m", pids: 2 } });
    expect(problemsIn(small)).toBe("at least 16777216, or 0 for no cap\nat least 32, or 0 for no cap");
  });

  test("a sandbox profile never has the host's network, nor another container's", () => {
    for (const network of ["host", "container:abc", ""])
      expect(sandboxProfile.safeParse({ network }).success, network).toBe(false);
  });

  test("a sandbox profile's mode refuses the jobs of main agents, or all", () => {
    const of = (mode: typeof base.mode) =>
      [undefined, "main", "default", "coder"].map((one) => isDisabled(mode, one));
    expect(of("all")).toEqual([false, false, false, false]);
    expect(of("non-main")).toEqual([true, true, true, false]);
    expect(of("off")).toEqual([true, true, true, true]);
  });
});

describe("command's limits", () => {
  test("a command's limits can only be tightened by a job, and 0 is no cap to both", () => {
    const { exec } = base;
    expect(tightenLimits(exec, { timeoutMs: 5_000 }).timeoutMs).toBe(5_000);
    expect(tightenLimits(exec, { timeoutMs: 999_999, keptBytes: undefined })).toEqual(exec);
    expect(tightenLimits(exec, { timeoutMs: 0 })).toEqual(exec);
    expect(tightenLimits({ ...exec, timeoutMs: 0 }, { timeoutMs: 999_999 }).timeoutMs).toBe(999_999);
    expect(tightenLimits(exec, { graceMs: 0 }).graceMs).toBe(0);
  });
});

describe("layer", () => {
  test("a layer adds no defaults", () => {
    expect(profileLayer.parse({ limits: { cpus: 2 } })).toEqual({ limits: { cpus: 2 } });
    expect(profileLayer.parse({})).toEqual({});
  });

  test("a layer is named after the fleet, profile, tenant or agent it belongs to", () => {
    for (const id of ["fleet", "profile.net", "tenant.acme", "agent.acme.coder"])
      expect(layerId.safeParse(id).success, id).toBe(true);
    for (const id of ["", "fleet.x", "profile", "tenant.shared", "tenant. Acme", "agent.acme", "key.a"])
      expect(layerId.safeParse(id).success, id).toBe(false);
  });

  test("a layer of a tenant sets nothing that is the operator's alone, and may choose another profile", () => {
    const ofTenant = layerSchema(layers.tenant("acme"));
    expect(ofTenant.parse({ profile: "net", limits: { cpus: "2" } })).toEqual({
      profile: "net",
      limits: { cpus: 2 },
    });
    const own = profileFields.filter(({ rule }) => rule.kind === "operator").map(({ path }) => path);
    expect(own).toContain("runtime");
    for (const path of own) expect(problemsIn(ofTenant.safeParse({ [path]: "runc" })), path).toContain(path);
    expect(problemsIn(tighteningLayer.safeParse({ profile: "net" }))).toContain("profile");
    expect(layerSchema(layers.profile("net")).parse({ runtime: "runsc" })).toEqual({ runtime: "runsc" });
  });

  test("an operator's layer replaces what is above it, and adds variables by name", () => {
    const first = replaceWith(base, { env: { A: "1", B: "1" }, limits: { cpus: 4 }, exec: { timeoutMs: 0 } });
    const both = replaceWith(first, { env: { B: "2" }, limits: { memoryBytes: 0 }, runtime: "runsc" });
    expect(both).toMatchObject({ env: { A: "1", B: "2" }, runtime: "runsc", exec: { timeoutMs: 0 } });
    expect([both.limits.cpus, both.limits.memoryBytes]).toEqual([4, 0]);
  });

  test("a lower layer may only lower, choose from lists and tighten; the rest is reported", () => {
    const above = replaceWith(base, { images: ["a", "b"], networks: ["web"], exec: { timeoutMs: 0 } });
    const good = { image: "b", network: "web", mode: "non-main", exec: { timeoutMs: 60_000 } } as const;
    const fine = tightenBy(above, { ...good, images: ["b"], limits: { cpus: 0.5 } });
    expect(fine.excess).toEqual([]);
    expect(fine.merged).toMatchObject({ ...good, images: ["b"], limits: { ...base.limits, cpus: 0.5 } });
    const { merged, excess } = tightenBy(fine.merged, {
      image: "a",
      network: "bridge",
      mode: "all",
      images: ["b", "c"],
      runtime: "runc",
      limits: { cpus: 0, pids: 257, openFiles: 512 },
    });
    expect(merged).toEqual({ ...fine.merged, limits: { ...fine.merged.limits, openFiles: 512 } });
    expect(excess.map(({ path, problem }) => `${path}: ${problem}`)).toEqual([
      "mode: all is looser than the non-main allowed here",
      "image: a is not among its images",
      "images: c is not in the list above",
      "runtime: only the operator's layers set it",
      "network: bridge is not among its networks",
      "limits.cpus: no cap is more than the 0.5 allowed here",
      "limits.pids: 257 is more than the 256 allowed here",
    ]);
    expect(tightenBy(fine.merged, { network: "none" }).excess).toEqual([]);
  });
});
