import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readConfig } from "../src/config.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "berth-proxy-"));
});

afterEach(() => rm(folder, { recursive: true }));

function rules(variables: Record<string, string>) {
  const read = readConfig(variables);
  if ("problems" in read) throw new Error(read.problems.join("\n"));
  return read.config.rules;
}

describe("engine proxy's rules", () => {
  test("the engine proxy's rules default to what the workers' settings name", async () => {
    const BERTH_CONFIG = join(folder, "worker.json");
    const profiles = { tools: { image: "tools" }, strong: { runtime: "runsc" } };
    await writeFile(BERTH_CONFIG, JSON.stringify({ profiles }));
    const given = {
      BERTH_CONFIG,
      BERTH_IMAGE: "own:1",
      BERTH_WORKER_USER: "1001:1001",
      BERTH_PROXY_IMAGES: "",
    };
    expect(rules(given)).toMatchObject({
      images: ["own:1", "berth-sandbox:bookworm", "tools:latest"],
      runtimes: ["default", "runsc"],
      users: ["1001:1001"],
      networks: ["none"],
    });
  });

  test("the engine proxy's rules read the workers' file as the workers do: YAML, of which JSON is a part", async () => {
    const BERTH_CONFIG = join(folder, "worker.yaml");
    await writeFile(
      BERTH_CONFIG,
      "BERTH_RUNTIME: runsc # for all\nprofiles:\n  tools: { image: tools }\n  strong:\n    runtime: kata\n",
    );
    expect(rules({ BERTH_CONFIG })).toMatchObject({
      images: ["berth-sandbox:bookworm", "berth-sandbox:bookworm", "tools:latest"],
      runtimes: ["runsc", "kata"],
    });
    await writeFile(BERTH_CONFIG, "# nothing yet\n");
    expect(rules({ BERTH_CONFIG })).toMatchObject({ runtimes: ["default"] });
    await writeFile(BERTH_CONFIG, "profiles: [broken");
    expect(readConfig({ BERTH_CONFIG })).toMatchObject({
      problems: [expect.stringContaining("worker.yaml: ")],
    });
  });

  test("the engine proxy's rules do not allow the engine's default runtime, or root, beside the runtime that the fleet has", () => {
    const given = { BERTH_RUNTIME: "runsc", BERTH_WORKER_USER: "0:0" };
    expect(rules(given)).toMatchObject({ runtimes: ["runsc"], users: [] });
  });

  test("the engine proxy's rules are the operator's lists where there are some", () => {
    const lists = { BERTH_PROXY_IMAGES: "one:1, two@sha256:0a", BERTH_PROXY_RUNTIMES: "runsc,default" };
    expect(rules({ ...lists, BERTH_IMAGE: "own:1", BERTH_RUNTIME: "kata" })).toMatchObject({
      images: ["one:1", "two@sha256:0a"],
      runtimes: ["runsc", "default"],
    });
  });

  test("the engine proxy's rules are not guessed when the workers' file cannot be read or a list is empty", async () => {
    const BERTH_CONFIG = join(folder, "worker.json");
    expect(readConfig({ BERTH_CONFIG })).toMatchObject({
      problems: [expect.stringContaining("no such file")],
    });
    await writeFile(BERTH_CONFIG, '{"profiles": {"a": {"image": 7}}}');
    expect(readConfig({ BERTH_CONFIG })).toMatchObject({
      problems: [expect.stringContaining("profiles.a.image")],
    });
    expect(readConfig({ BERTH_PROXY_NETWORKS: " , " })).toMatchObject({
      problems: [expect.stringContaining("BERTH_PROXY_NETWORKS"), expect.anything()],
    });
  });
});
