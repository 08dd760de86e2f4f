import type { StoredLayer } from "@berth/ledger";
import {
  type AccessRule,
  agentName,
  isFault,
  type LayerId,
  layers,
  type ProfileField,
  type ProfileLayer,
  profileFields,
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

/** Fields whose 0 is no cap, by what they mean. */
const caps = [
  ...["limits.memoryBytes", "limits.cpus", "limits.pids", "limits.workspaceBytes", "limits.workspaceEntries"],
  ...["limits.diskReadBytesPerSecond", "limits.diskWriteBytesPerSecond", "limits.diskReadsPerSecond"],
  ...["limits.diskWritesPerSecond", "limits.egressBytesPerHour", "limits.egressBytesPerSecond"],
  ...["exec.timeoutMs", "jobTimeoutMs", "idleMs", "maxAgeMs"],
];
/** Fields that are less where they are lower, 0 included. */
const amounts = [
  ...["limits.swapBytes", "limits.openFiles", "limits.tmpfsBytes", "limits.tmpfsInodes", "limits.shmBytes"],
  ...["limits.rootBytes", "limits.teamBytes", "limits.teamEntries", "limits.egressConnections"],
  ...["exec.graceMs", "exec.drainMs", "exec.shownBytes", "exec.keptBytes", "exec.outputBytes"],
  ...["parallel", "weight"],
];
const mebibyte = 1024 ** 2;
/** Of which a field takes those that its schema allows. */
const numbers = [
  0,
  1,
  2,
  10,
  16,
  32,
  100,
  512,
  1_000,
  4_096,
  30_000,
  2 ** 20,
  16 * mebibyte,
  64 * mebibyte,
  2 ** 31,
];

/** The values of each strict field, the loosest first. */
const ranks: Readonly<Record<string, readonly (string | boolean)[]>> = {
  mode: ["all", "non-main", "off"],
  egressBy: ["proxy", "fetch"],
  leaks: ["off", "report", "block"],
  workspace: ["rw", "ro", "none"],
  agentAccess: ["rw", "ro", "none"],
  toolsAccess: ["rw", "ro", "none"],
  readOnlyRoot: [false, true],
};

const image = fc.constantFrom("berth-sandbox:bookworm", "a", "b", "c");
const network = fc.constantFrom("none", "bridge", "web");
/** What each rule lets commands reach, of these places. */
const reach: Readonly<Record<string, readonly string[]>> = {
  "*": ["example.com:443", "www.example.com:443", "other.org:443"],
  "example.com": ["example.com:443"],
  "*.example.com": ["www.example.com:443"],
  "example.com:8443": ["example.com:8443"],
  "192.0.2.7:80": ["192.0.2.7:80"],
};
const rule = fc.constantFrom<AccessRule>(
  { kinds: { allow: [], deny: ["fetch"] } },
  { paths: { allow: ["src/**"], deny: [] } },
  { commands: { allow: [], deny: ["git push"] } },
);
const directory = (name: string) => ({ source: `/${name}`, target: `/mnt/${name}`, access: "ro" as const });

/** Fields whose values are not compared by number or order. */
const others: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  image,
  images: fc.uniqueArray(image),
  network,
  networks: fc.uniqueArray(network),
  egress: fc.uniqueArray(fc.constantFrom(...Object.keys(reach))),
  env: fc.constantFrom({ TEAM: "blue" }, { TEAM: "red", EXTRA: "1" }),
  workdir: fc.constantFrom("", "src"),
  rules: fc.array(rule, { maxLength: 2 }),
  mounts: fc.subarray(["a", "b"]),
  mountable: fc.constantFrom({ a: directory("a") }, { b: directory("b") }, { a: directory("b") }),
  runtime: fc.constantFrom("runc", "runsc"),
  passthroughEnv: fc.constantFrom([], ["HTTPS_CA"]),
  user: fc.constantFrom("1000:1000", "2000:2000"),
  tmpfs: fc.constantFrom([], ["/tmp"], ["/tmp", "/scratch"]),
  dns: fc.constantFrom([], ["192.0.2.53"]),
  extraHosts: fc.constantFrom([], ["db:192.0.2.7"]),
  ulimits: fc.constantFrom({}, { nofile: 1_024 }),
  seccomp: fc.constantFrom("/one.json", "/two.json"),
  apparmor: fc.constantFrom("one", "two"),
  gpus: fc.constantFrom<unknown>(0, 1, "all", ["one"]),
  keptOutput: fc.constantFrom("ends", "start"),
  quotaFor: fc.constantFrom("all", "writes"),
  ioWeight: fc.constantFrom(0, 10, 1_000),
  "setup.command": fc.constantFrom("", "true"),
  "setup.timeoutMs": fc.constantFrom(1_000, 2_000),
  "setup.network": fc.constantFrom("none", "bridge"),
  "setup.root": fc.boolean(),
};

function valuesOf({ path, schema }: ProfileField): fc.Arbitrary<unknown> {
  const ranked = ranks[path];
  if (ranked) return fc.constantFrom(...ranked);
  if ([...caps, ...amounts].includes(path)) {
    const fitting = numbers.filter((number) => schema.safeParse(number).success);
    if (fitting.length < 2) throw new Error(`too few numbers fit ${path}`);
    return fc.constantFrom(...fitting);
  }
  const other = others[path];
  if (!other) throw new Error(`${path} has no generator: give it one, and say what more of it is`);
  return other;
}

/** A layer in which one of so many fields is set. */
function layerOf(oneIn: number): fc.Arbitrary<ProfileLayer> {
  const values = Object.fromEntries(
    profileFields.map((field) => [
      field.path,
      fc.oneof(
        { weight: oneIn - 1, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: valuesOf(field) },
      ),
    ]),
  );
  return fc.record(values).map((said) => {
    const layer: Record<string, unknown> = {};
    for (const { path, group, name } of profileFields) {
      const value = said[path];
      if (value === undefined) continue;
      if (group === undefined) layer[name] = value;
      else layer[group] = { ...(layer[group] as object | undefined), [name]: value };
    }
    return layer as ProfileLayer;
  });
}

function policyOf(ofProfile: ProfileLayer, live: Readonly<Record<LayerId, ProfileLayer>>): Policy {
  const policy = new Policy({ base: replaceWith(base, ofProfile), files: new Map() });
  const entries = Object.entries(live) as [LayerId, ProfileLayer][];
  policy.replace(
    entries.map(([id, settings]): StoredLayer => ({ layer: id, version: 1, atMs: 0, by: "", settings })),
  );
  return policy;
}

type Values = Readonly<Record<string, unknown>>;

function valueAt(profile: SandboxProfile, { group, name }: ProfileField): unknown {
  return ((group === undefined ? profile : profile[group]) as Values)[name];
}

function isWithin(some: readonly unknown[], all: readonly unknown[]): boolean {
  const known = all.map((one) => JSON.stringify(one));
  return some.every((one) => known.includes(JSON.stringify(one)));
}

/** By path: whether the first value is more than the second allows, for fields that are not compared by number or order. */
const isMore: Readonly<Record<string, (job: SandboxProfile, allowed: SandboxProfile) => boolean>> = {
  image: (job, { image, images }) => !isWithin([job.image], [image, ...images]),
  network: (job, { network, networks }) => !isWithin([job.network], [network, ...networks, "none"]),
  images: (job, { images }) => !isWithin(job.images, images),
  networks: (job, { networks }) => !isWithin(job.networks, networks),
  egress: (job, { egress }) => {
    const reached = (rules: readonly string[]) => rules.flatMap((one) => reach[one] ?? []);
    return !isWithin(reached(job.egress), reached(egress));
  },
  mounts: (job, { mounts, mountable }) => !isWithin(job.mounts, [...mounts, ...Object.keys(mountable)]),
  rules: (job, { rules }) => !isWithin(rules, job.rules),
  // A tenant's own business.
  env: () => false,
  workdir: () => false,
  // Either is as much output.
  keptOutput: () => false,
};

/** Not by the rules that Berth merges with, but by what each field means. Where nothing is said of one, only the operator sets it. */
function moreThan(job: SandboxProfile, allowed: SandboxProfile): string[] {
  const isLooser = (field: ProfileField) => {
    const { path } = field;
    const [own, most] = [valueAt(job, field), valueAt(allowed, field)];
    const size = (value: unknown) => (value === 0 && caps.includes(path) ? Infinity : (value as number));
    if ([...caps, ...amounts].includes(path)) return size(own) > size(most);
    const ranked = ranks[path];
    if (ranked) return ranked.indexOf(own as string) < ranked.indexOf(most as string);
    return isMore[path]?.(job, allowed) ?? JSON.stringify(own) !== JSON.stringify(most);
  };
  return profileFields.filter(isLooser).map(({ path }) => path);
}

function resolved<T>(resolve: () => T): T | undefined {
  try {
    return resolve();
  } catch (error) {
    if (isFault(error, "not-granted") || isFault(error, "not-allowed")) return undefined;
    throw error;
  }
}

describe("merge of profile layers", () => {
  test("no job gets more than its key, its agent, its tenant or the fleet may have, in any field, with any layers and settings", () => {
    const compared = { ofKey: 0, ofJob: 0 };
    const [operators, lower, own] = [layerOf(3), layerOf(8), layerOf(40)];
    fc.assert(
      fc.property(operators, operators, lower, lower, lower, lower, own, (...given) => {
        const [ofProfile, live, fleet, ofTenant, ofAgent, keySettings, settings] = given;
        const policy = policyOf(ofProfile, {
          [layers.profile("default")]: live,
          [layers.fleet]: fleet,
          [layers.tenant(tenant)]: ofTenant,
          [layers.agent(tenant, agent)]: ofAgent,
        });
        const asked = [{}, { tenant }, { tenant, agent }, { tenant, agent, keySettings }];
        const all = [...asked, { tenant, agent, keySettings, settings }];
        const profiles = all.map((one) => resolved(() => policy.resolve(one))?.profile);
        if (profiles[3]) compared.ofKey++;
        if (profiles[4]) compared.ofJob++;
        for (const [at, profile] of profiles.entries())
          for (const above of profiles.slice(0, at))
            if (profile && above) expect(moreThan(profile, above)).toEqual([]);
      }),
      { numRuns: 1_000, seed: 11 },
    );
    // The others were refused for what they chose. The seed decides how many.
    expect(compared.ofKey).toBeGreaterThan(200);
    expect(compared.ofJob).toBeGreaterThan(50);
  });

  test.each(profileFields.map((field) => [field.path, field] as const))(
    "by a value of %s that any layer below the operator's, a key or a job says",
    (_, field) => {
      const said = fc.sample(valuesOf(field), { numRuns: 12, seed: 7 });
      const layered = (value: unknown) =>
        (field.group === undefined
          ? { [field.name]: value }
          : { [field.group]: { [field.name]: value } }) as ProfileLayer;
      for (const held of said)
        for (const wanted of said) {
          const none = policyOf(layered(held), {} as Record<LayerId, ProfileLayer>);
          const { profile: above } = none.resolve({ tenant });
          const withLayer = policyOf(layered(held), { [layers.tenant(tenant)]: layered(wanted) });
          const results = [
            resolved(() => withLayer.resolve({ tenant })),
            resolved(() => none.resolve({ tenant, keySettings: layered(wanted) })),
            resolved(() => none.resolve({ tenant, settings: layered(wanted) })),
          ];
          for (const result of results) if (result) expect(moreThan(result.profile, above)).toEqual([]);
        }
    },
  );

  test("no job gets more by asking for no cap, in any layer below the operator's", () => {
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
