import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { readConfig } from "../src/config.ts";

const directories: string[] = [];
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

function fileOf(content: object): string {
  const directory = mkdtempSync(join(tmpdir(), "berth-config-"));
  directories.push(directory);
  const path = join(directory, "worker.json");
  writeFileSync(path, JSON.stringify(content));
  return path;
}

describe("a named profile of the worker's configuration file", () => {
  test("has the image and the runtime of BERTH_IMAGE and BERTH_RUNTIME unless it names its own", () => {
    const profiles = { net: { network: "bridge" }, own: { image: "other:1", runtime: "runc" } };
    const read = readConfig({
      BERTH_CONFIG: fileOf({ profiles }),
      BERTH_IMAGE: "ours:2",
      BERTH_RUNTIME: "runsc",
    });
    if (!("config" in read)) expect.fail(read.problems.join("; "));
    const of = (name: string) => read.config.profiles.get(name);
    expect(of("default")).toMatchObject({ image: "ours:2", runtime: "runsc", network: "none" });
    expect(of("net")).toMatchObject({ image: "ours:2", runtime: "runsc", network: "bridge" });
    expect(of("own")).toMatchObject({ image: "other:1", runtime: "runc" });
  });

  test("inherits from the file's own settings too, and every problem of it is named", () => {
    const inherited = readConfig({ BERTH_CONFIG: fileOf({ BERTH_RUNTIME: "runsc", profiles: { net: {} } }) });
    expect("config" in inherited && inherited.config.profiles.get("net")?.runtime).toBe("runsc");
    const path = fileOf({ profiles: { net: { network: "host", limits: { cpus: -1 } } } });
    expect(readConfig({ BERTH_CONFIG: path })).toEqual({
      problems: [
        expect.stringContaining(`${path}: profiles.net.network: `),
        expect.stringContaining(`${path}: profiles.net.limits.cpus: `),
      ],
    });
  });

  test("and a pool and a host are told their own rule when their name does not fit", () => {
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
    return "config" in read ? read.config.BERTH_WORKER_METRICS : read.problems.join("; ");
  };
  expect(of("")).toBeUndefined();
  expect(of("0.0.0.0:9464")).toEqual({ host: "0.0.0.0", port: 9464 });
  expect(of("[::1]:0")).toEqual({ host: "::1", port: 0 });
  for (const bad of ["9464", ":9464", "::1:9464", "localhost:", "localhost:65536"])
    expect(of(bad), bad).toContain("BERTH_WORKER_METRICS: ");
});
