import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { profileName } from "@berth/protocol";
import { afterEach, describe, expect, test } from "vitest";
import { readConfig } from "../src/config.ts";
import { Policy } from "../src/policy.ts";

const directories: string[] = [];
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

function fileOf(content: string): string {
  const directory = mkdtempSync(join(tmpdir(), "berth-config-"));
  directories.push(directory);
  const path = join(directory, "worker.yaml");
  writeFileSync(path, content);
  return path;
}

function resolvedWith(variables: Record<string, string>) {
  const read = readConfig(variables);
  if (!("config" in read)) expect.fail(read.problems.join("; "));
  const { base, profiles } = read.config;
  const policy = new Policy({ base, files: profiles });
  return (profile: string) => policy.resolve({ profile: profileName.parse(profile) }).profile;
}

describe("named profile of the worker's configuration file", () => {
  test("a named profile of the worker's configuration file begins with the variables' values, and may replace each", () => {
    const profiles = {
      net: { network: "bridge" },
      own: { image: "other:1", runtime: "runc", limits: { memoryBytes: "2g" }, exec: { timeoutMs: "5m" } },
    };
    const of = resolvedWith({
      BERTH_CONFIG: fileOf(JSON.stringify({ profiles })),
      ...{ BERTH_IMAGE: "ours:2", BERTH_RUNTIME: "runsc", BERTH_MEMORY: "1g", BERTH_CPUS: "0" },
      ...{ BERTH_TIMEOUT: "2m", BERTH_QUOTA: "0", BERTH_IDLE_MS: "5000", BERTH_PIDS: "64" },
    });
    expect(of("default")).toMatchObject({
      image: "ours:2",
      runtime: "runsc",
      network: "none",
      idleMs: 5_000,
    });
    expect(of("default").limits).toMatchObject({
      memoryBytes: 1024 ** 3,
      cpus: 0,
      pids: 64,
      workspaceBytes: 0,
    });
    expect(of("net")).toMatchObject({ image: "ours:2", runtime: "runsc", network: "bridge" });
    expect(of("net").exec.timeoutMs).toBe(120_000);
    expect(of("own")).toMatchObject({ image: "other:1", runtime: "runc" });
    expect([of("own").limits.memoryBytes, of("own").limits.pids]).toEqual([2 * 1024 ** 3, 64]);
    expect(of("own").exec.timeoutMs).toBe(300_000);
  });

  test("a named profile of the worker's configuration file may be written in YAML, inherits from the file's own settings, and every problem of it is named", () => {
    const yaml = "BERTH_RUNTIME: runsc # gVisor\nBERTH_IDLE_MS: 1h\nprofiles:\n  net: {}\n";
    const of = resolvedWith({ BERTH_CONFIG: fileOf(yaml) });
    expect(of("net")).toMatchObject({ runtime: "runsc", idleMs: 3_600_000 });
    const path = fileOf(JSON.stringify({ profiles: { net: { network: "host", limits: { cpus: -1 } } } }));
    expect(readConfig({ BERTH_CONFIG: path })).toEqual({
      problems: [
        expect.stringContaining(`${path}: profiles.net.network: `),
        expect.stringContaining(`${path}: profiles.net.limits.cpus: `),
      ],
    });
    const broken = readConfig({ BERTH_CONFIG: fileOf("profiles: [") });
    expect("problems" in broken && broken.problems.join()).toContain("worker.yaml: ");
  });

  test("a variable with an invalid value is reported with the values that are allowed", () => {
    const read = readConfig({ BERTH_MEMORY: "lots", BERTH_TIMEOUT: "30", BERTH_MODE: "some" });
    const problems = "problems" in read ? read.problems.join("\n") : "";
    expect(problems).toContain("BERTH_MEMORY: a size is a number of bytes, or a text such as 512m or 1g");
    expect(problems).toContain("BERTH_TIMEOUT: a time is a number of milliseconds, or a text such as 30s");
    expect(problems).toContain("BERTH_MODE: ");
  });

  test("an invalid pool or host name is reported with the rule for such names", () => {
    const read = readConfig({ BERTH_HOST: "Bad Host", BERTH_POOLS: "gpu,Bad Pool" });
    const problems = "problems" in read ? read.problems.join("\n") : "";
    expect(problems).toContain("BERTH_HOST: a host name is 1 to 63 of a-z");
    expect(problems).toContain("a pool name is 1 to 63 of a-z");
    expect(problems).not.toContain("tenant");
  });
});

test("the address of the worker's metrics is a host and a port, also of IPv6", () => {
  const of = (text: string) => {
    const read = readConfig({ BERTH_WORKER_METRICS: text });
    return "config" in read ? read.config.metricsListen : read.problems.join("; ");
  };
  expect(of("")).toBeUndefined();
  expect(of("0.0.0.0:9464")).toEqual({ host: "0.0.0.0", port: 9464 });
  expect(of("[::1]:0")).toEqual({ host: "::1", port: 0 });
  for (const bad of ["9464", ":9464", "::1:9464", "localhost:", "localhost:65536"])
    expect(of(bad), bad).toContain("BERTH_WORKER_METRICS: ");
});
