import type { StoredLayer } from "@berth/ledger";
import {
  agentName,
  isFault,
  type LayerId,
  layers,
  type ProfileLayer,
  replaceWith,
  type SandboxProfile,
  sandboxProfile,
  tenantId,
} from "@berth/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Policy } from "../../apps/worker/src/policy.ts";

const base = sandboxProfile.parse({});
const tenant = tenantId.parse("acme");
const agent = agentName.parse("coder");

const some = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 });
const cap = (least: number) => some(fc.oneof(fc.constant(0), fc.integer({ min: least, max: 4 * least })));
const image = fc.constantFrom("berth-sandbox:bookworm", "a", "b", "c");
const network = fc.constantFrom("none", "bridge", "web");

const layer = fc.record({
  mode: some(fc.constantFrom("all" as const, "non-main" as const, "off" as const)),
  image: some(image),
  images: some(fc.uniqueArray(image)),
  network: some(network),
  networks: some(fc.uniqueArray(network)),
  idleMs: cap(1_000),
  jobTimeoutMs: cap(1_000),
  maxAgeMs: cap(1_000),
  weight: some(fc.integer({ min: 1, max: 200 })),
  parallel: some(fc.integer({ min: 1, max: 64 })),
  workspace: some(fc.constantFrom("rw" as const, "ro" as const, "none" as const)),
  agentAccess: some(fc.constantFrom("rw" as const, "ro" as const, "none" as const)),
  toolsAccess: some(fc.constantFrom("rw" as const, "ro" as const, "none" as const)),
  readOnlyRoot: some(fc.boolean()),
  mountable: some(fc.constant({ a: { source: "/a", target: "/mnt/a", access: "ro" as const } })),
  mounts: some(fc.subarray(["a"])),
  limits: fc.record({
    memoryBytes: cap(16 * 1024 ** 2),
    cpus: cap(1),
    pids: cap(32),
    openFiles: some(fc.integer({ min: 512, max: 8_192 })),
    swapBytes: some(fc.integer({ min: 0, max: 2 ** 27 })),
    tmpfsBytes: some(fc.integer({ min: 1, max: 2 ** 27 })),
    workspaceBytes: cap(1_000),
    workspaceEntries: cap(10),
    diskReadBytesPerSecond: cap(1_000),
    diskWritesPerSecond: cap(10),
  }),
  exec: fc.record({ timeoutMs: cap(1_000), graceMs: some(fc.integer({ min: 0, max: 9_999 })) }),
}) satisfies fc.Arbitrary<ProfileLayer>;

function policyOf(ofProfile: ProfileLayer, live: Readonly<Record<LayerId, ProfileLayer>>): Policy {
  const policy = new Policy({ base: replaceWith(base, ofProfile), files: new Map() });
  const entries = Object.entries(live) as [LayerId, ProfileLayer][];
  policy.replace(
    entries.map(([id, settings]): StoredLayer => ({ layer: id, version: 1, atMs: 0, by: "", settings })),
  );
  return policy;
}

/** Not by the rules that Berth merges with, but by what each field means. */
function moreThan(job: SandboxProfile, allowed: SandboxProfile): string[] {
  const caps = (one: SandboxProfile) => ({
    ...one.limits,
    idleMs: one.idleMs,
    maxAgeMs: one.maxAgeMs,
    weight: one.weight,
    parallel: one.parallel,
    jobTimeoutMs: one.jobTimeoutMs,
    timeoutMs: one.exec.timeoutMs,
  });
  const infinite = new Set([
    "memoryBytes",
    "cpus",
    "pids",
    "workspaceBytes",
    "workspaceEntries",
    "diskReadBytesPerSecond",
    "diskWritesPerSecond",
    "idleMs",
    "maxAgeMs",
    "jobTimeoutMs",
    "timeoutMs",
  ]);
  const size = (name: string, value: number) => (value === 0 && infinite.has(name) ? Infinity : value);
  const limits = Object.entries(caps(allowed));
  const own: Record<string, number> = caps(job);
  const modes = ["off", "non-main", "all"];
  const accesses = ["none", "ro", "rw"];
  const mountable = [...allowed.mounts, ...Object.keys(allowed.mountable)];
  return [
    ...limits.filter(([name, most]) => size(name, own[name] ?? 0) > size(name, most)).map(([name]) => name),
    ...(job.exec.graceMs > allowed.exec.graceMs ? ["graceMs"] : []),
    ...(modes.indexOf(job.mode) > modes.indexOf(allowed.mode) ? ["mode"] : []),
    ...(["workspace", "agentAccess", "toolsAccess"] as const).filter(
      (name) => accesses.indexOf(job[name]) > accesses.indexOf(allowed[name]),
    ),
    ...(allowed.readOnlyRoot && !job.readOnlyRoot ? ["readOnlyRoot"] : []),
    ...(job.mounts.every((name) => mountable.includes(name)) ? [] : ["mounts"]),
    ...(JSON.stringify(job.mountable) === JSON.stringify(allowed.mountable) ? [] : ["mountable"]),
    ...([allowed.image, ...allowed.images].includes(job.image) ? [] : ["image"]),
    ...([allowed.network, ...allowed.networks, "none"].includes(job.network) ? [] : ["network"]),
  ];
}

function resolved<T>(resolve: () => T): T | undefined {
  try {
    return resolve();
  } catch (error) {
    if (isFault(error, "not-granted") || isFault(error, "not-allowed")) return undefined;
    throw error;
  }
}

describe("no job gets more", () => {
  test("than its tenant, its agent or the fleet may have, whatever the layers and its own settings say", () => {
    let compared = 0;
    fc.assert(
      fc.property(layer, layer, layer, layer, layer, some(layer), (...given) => {
        const [ofProfile, live, fleet, ofTenant, ofAgent, settings] = given;
        const policy = policyOf(ofProfile, {
          [layers.profile("default")]: live,
          [layers.fleet]: fleet,
          [layers.tenant(tenant)]: ofTenant,
          [layers.agent(tenant, agent)]: ofAgent,
        });
        const job = resolved(() => policy.resolve({ tenant, agent, settings }));
        if (!job) return;
        compared++;
        for (const above of [{}, { tenant }, { tenant, agent }])
          expect(moreThan(job.profile, policy.resolve(above).profile)).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
    // The others were refused.
    expect(compared).toBeGreaterThan(20);
  });

  test("than before by asking for no cap, in any layer below the operator's", () => {
    const none = { idleMs: 0, limits: { memoryBytes: 0, cpus: 0, pids: 0 }, exec: { timeoutMs: 0 } };
    const policy = policyOf({}, { [layers.fleet]: none, [layers.tenant(tenant)]: none } as Record<
      LayerId,
      ProfileLayer
    >);
    expect(policy.resolve({ tenant }).profile).toEqual(base);
    expect(() => policy.resolve({ tenant, settings: none })).toThrow(
      "the job asks for more than acme may have: idleMs: no cap is more than the 1800000 allowed here; limits.memoryBytes",
    );
  });
});
