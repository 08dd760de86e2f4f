import { sandboxProfile } from "@berth/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ContainerRules, fixedFields, sandboxContainer } from "../src/docker/container-shape.ts";
import { containerSpec } from "../src/docker/container-spec.ts";
import { writeLabels } from "../src/docker/labels.ts";
import { rootSetUpSpec } from "../src/docker/root-set-up.ts";

const rules: ContainerRules = {
  fleet: "f",
  workspacesRoot: "/w",
  networks: ["none", "bridge"],
  images: ["one:1", "two:latest"],
  runtimes: ["default", "runsc"],
  users: ["1001:1001"],
  rootless: false,
};

const profiles = fc
  .record({
    image: fc.constantFrom("one:1", "two"),
    runtime: fc.constantFrom(undefined, "runsc"),
    network: fc.constantFrom("none", "bridge"),
    workspace: fc.constantFrom("rw", "ro", "none"),
    agentAccess: fc.constantFrom("rw", "ro", "none"),
    toolsAccess: fc.constantFrom("rw", "ro", "none"),
    quotaFor: fc.constantFrom("all", "writes"),
    ioWeight: fc.constantFrom(0, 10, 1_000),
    limits: fc.record({
      memoryBytes: fc.integer({ min: 16 * 1024 ** 2, max: 2 ** 40 }),
      cpus: fc.double({ min: 0.01, max: 64, noNaN: true }),
      pids: fc.integer({ min: 32, max: 2 ** 20 }),
      tmpfsBytes: fc.integer({ min: 1, max: 2 ** 40 }),
      diskReadBytesPerSecond: fc.integer({ min: 0, max: 2 ** 40 }),
      diskWritesPerSecond: fc.integer({ min: 0, max: 2 ** 20 }),
    }),
  })
  .map((profile) => sandboxProfile.parse(profile));

function written(
  profile = sandboxProfile.parse({ image: "one:1" }),
  user = "2000007:2000007",
  ownUid = true,
) {
  const spec = containerSpec({
    profile,
    workspace: { path: "/w/acme.s.main", user, ownUid, sharesUid: false },
    initPath: "/w/.init/0123abcd",
    linkDirectory: `/w/.link/${"0123abcd".repeat(4)}`,
    etcFiles: ["passwd", "group", "hosts", "resolv.conf"].map((name) => ({
      source: `/w/.etc/${name}.0123abcd`,
      target: `/etc/${name}`,
    })),
    hostMounts: [],
    seccomp: undefined,
    disk: "/dev/sda",
    shared: {
      directories: [
        { source: "/w/.agents/acme.coder", target: "/agent", access: profile.agentAccess },
        { source: "/w/.tools/acme", target: "/tools", access: profile.toolsAccess },
        {
          source: "/w/.team/acme.s.main",
          target: "/team",
          access: profile.ioWeight === 0 ? "none" : "ro",
        } as const,
      ].flatMap(({ access, ...directory }) => (access === "none" ? [] : [{ ...directory, access }])),
      gid: profile.agentAccess === profile.toolsAccess ? undefined : 2_000_008,
    },
    imageVolumes: ["/var/cache"],
  });
  const labels = { fleet: "f", worker: "w", sandboxKey: "acme.s.main", epoch: 7, config: "c" };
  return structuredClone({ ...spec, Labels: writeLabels(labels) });
}

const tmpfs = "rw,nosuid,nodev,size=1,nr_inodes=16,mode=1777,uid=2000007,gid=2000007,exec";

type Path = readonly string[];

/** Each field's path, and those of its object's fields. */
function pathsOf(value: object, above: Path = []): Path[] {
  return Object.entries(value).flatMap(([name, inner]) => [
    [...above, name],
    ...(name === "HostConfig" ? pathsOf(inner, [name]) : []),
  ]);
}

/** The same with one field set to a value, or left out. */
function changed(path: Path, value?: unknown): unknown {
  const whole: Record<string, unknown> = written();
  const at = path.length === 1 ? whole : (whole.HostConfig as Record<string, unknown>);
  const name = path.at(-1) ?? "";
  if (value === undefined) delete at[name];
  else at[name] = value;
  return whole;
}

const accepts = (container: unknown, of = rules) => sandboxContainer(of).safeParse(container).success;

describe("shape of a sandbox's container", () => {
  test("the shape of a sandbox's container is what containerSpec writes, for every profile and every user of a sandbox's own", () => {
    const users = fc.constantFrom(["2000000:2000000", true] as const, ["1001:1001", false] as const);
    fc.assert(
      fc.property(profiles, users, (profile, [user, ownUid]) => {
        const container = written(profile, user, ownUid);
        const parsed = sandboxContainer(rules).safeParse(container);
        expect(parsed.error?.issues ?? []).toEqual([]);
        // What the proxy sends to the engine is what the worker wrote.
        expect(parsed.data).toEqual(container);
      }),
    );
    expect(accepts(written(undefined, "0:0", false), { ...rules, rootless: true })).toBe(true);
  });

  test("the shape of a sandbox's container is not that of a set-up as root", () => {
    const setup = { command: "id", root: true };
    const asRoot = rootSetUpSpec(sandboxProfile.parse({ image: "one:1", setup }), "one:1", undefined);
    const { Labels } = written();
    for (const given of [rules, { ...rules, rootless: true, users: ["0:0"] }]) {
      expect(accepts({ ...asRoot, Labels }, given)).toBe(false);
      expect(accepts({ ...written(), HostConfig: asRoot.HostConfig }, given)).toBe(false);
    }
    expect(asRoot.HostConfig).toMatchObject({ Mounts: [], Privileged: false, CapDrop: ["ALL"] });
  });

  test("the shape of a sandbox's container needs every field, and knows no other value of those that are fixed", () => {
    const paths = pathsOf(written());
    expect(paths.length).toBeGreaterThan(30);
    expect(paths.filter((path) => accepts(changed(path))).map(String)).toEqual([]);
    const strange = ["", "host", 0, -1, true, ["seccomp=unconfined"], { Type: "json-file" }];
    const loose = paths.filter((path) => strange.every((value) => accepts(changed(path, value))));
    expect(loose).toEqual([]);
    for (const name of [
      "Binds",
      "CapAdd",
      "Devices",
      "PidMode",
      "privileged",
      "DeviceRequests",
      "UsernsMode",
    ])
      expect(accepts(changed(["HostConfig", name], "host")), name).toBe(false);
  });

  test.for<[string, Path, unknown]>([
    ["a swap of its own", ["HostConfig", "MemorySwap"], -1],
    ["a program of its own", ["Entrypoint"], ["sh"]],
    ["a tmpfs with another option", ["HostConfig", "Tmpfs"], { "/tmp": "rw,suid,dev,size=1" }],
    ["no init", ["HostConfig", "Mounts"], [{ Type: "bind", Source: "/w/acme", Target: "/workspace" }]],
    [
      "a read-only place that it may write to",
      ["HostConfig", "Ulimits"],
      [{ Name: "memlock", Soft: -1, Hard: -1 }],
    ],
    ["a group of the host", ["User"], "2000007:0"],
    ["another group of the host", ["HostConfig", "GroupAdd"], ["999"]],
    ["a program's words of its own", ["Cmd"], ["--workspace", "/", "--link", "/.berth/link"]],
    ["a word that init gets besides", ["Cmd"], [...fixedFields.Cmd, "--also", "/etc"]],
    ["a workspace in memory and on disk", ["HostConfig", "Tmpfs"], { "/workspace": tmpfs }],
    ["a system user", ["User"], "1:1"],
    ["an image that is not listed", ["Image"], "three"],
    ["another runtime", ["HostConfig", "Runtime"], "io.containerd.runc.v2"],
  ])("the shape of a sandbox's container refuses %s", ([, path, value]) => {
    expect(accepts(changed(path, value))).toBe(false);
  });

  test("the shape of a sandbox's container takes no mount but a workspace, init, its sockets and the three files, each from its own folder", () => {
    const container = written();
    const mounts = container.HostConfig?.Mounts ?? [];
    const withMount = (index: number, more: object) => {
      const list = mounts.map((mount, at) => (at === index ? { ...mount, ...more } : mount));
      return accepts(changed(["HostConfig", "Mounts"], list));
    };
    expect(withMount(0, {})).toBe(true);
    const workspaces = ["/", "/w", "/w/", "/w/..", "/w/../etc", "/w/.uids", "/w/a/b", "/x/acme", "/w/acme/"];
    expect(workspaces.filter((Source) => withMount(0, { Source }))).toEqual([]);
    const inits = ["/w/.init/../x", "/w/.init/", "/w/acme", "/w/.etc/0123abcd", "/w/.init/0123abcd/x"];
    expect(inits.filter((Source) => withMount(1, { Source }))).toEqual([]);
    expect(withMount(1, { ReadOnly: false })).toBe(false);
    const links = [
      "/w/.link",
      "/w/.link/",
      "/w/.link/0123abcd",
      "/w/acme",
      "/run",
      `/w/.init/${"0".repeat(32)}`,
    ];
    expect(links.filter((Source) => withMount(2, { Source }))).toEqual([]);
    expect(withMount(2, { Source: `/w/.link/${"0".repeat(32)}` })).toBe(true);
    expect(withMount(2, { ReadOnly: false })).toBe(false);
    expect(withMount(3, { Source: "/w/.etc/group.0123abcd" })).toBe(false);
    expect(withMount(3, { Target: "/etc/shadow" })).toBe(false);
    expect(withMount(0, { Type: "volume" })).toBe(false);
    expect(withMount(0, { BindOptions: { Propagation: "shared" } })).toBe(false);
    expect(accepts(changed(["HostConfig", "Mounts"], [...mounts, mounts[0]]))).toBe(false);
  });
});

describe("shape of a container that works on a tree", () => {
  const aside = "/w/.snapshots/.aside-0123456789abcdef";
  const snapshot = "/w/.snapshots/acme.base.0123456789abcdef";
  const init = { Type: "bind", Source: "/w/.init/0123abcd", Target: "/.berth/init", ReadOnly: true };
  const at = (Target: string, Source: string) => ({ Type: "bind", Source, Target });
  const tree = (Cmd: readonly string[], ...mounts: readonly object[]) => {
    const spec = written();
    return { ...spec, Cmd, HostConfig: { ...spec.HostConfig, Mounts: [...mounts, init] } };
  };
  const clone = ["clone", "/.berth/from", "/workspace"];
  const clear = ["clear", "/workspace"];
  const sandbox = fixedFields.Cmd;

  test("a container that works on a tree may copy a workspace or snapshot aside, and clear the old one", () => {
    const copies = [
      tree(clone, at("/workspace", aside), at("/.berth/from", "/w/acme.s.main")),
      tree(clone, at("/workspace", aside), at("/.berth/from", snapshot)),
      tree(clear, at("/workspace", aside)),
    ];
    expect(copies.map((one) => accepts(one))).toEqual([true, true, true]);
  });

  test("a container that works on a tree may do nothing else, and run no command over a snapshot", () => {
    const from = at("/.berth/from", snapshot);
    const refused = {
      "commands beside a snapshot": tree(sandbox, at("/workspace", "/w/acme"), from),
      "commands in a snapshot": tree(sandbox, at("/workspace", snapshot)),
      "a sandbox's workspace cleared": tree(clear, at("/workspace", "/w/acme")),
      "another way round": tree(["clone", "/workspace", "/.berth/from"], at("/workspace", aside), from),
      "another tool": tree(["volume", "delete", "/workspace"], at("/workspace", aside)),
      "more words": tree([...clear, "/"], at("/workspace", aside)),
      "a shell": { ...tree(clear, at("/workspace", aside)), Entrypoint: ["sh"] },
      "a file of the host": tree(clone, at("/workspace", aside), at("/.berth/from", "/etc")),
      "a way out of the folder": tree(clear, at("/workspace", "/w/.snapshots/../../etc")),
      "the folder itself": tree(clear, at("/workspace", "/w/.snapshots/")),
    };
    const accepted = Object.entries(refused).filter(([, container]) => accepts(container));
    expect(accepted.map(([what]) => what)).toEqual([]);
  });
});
