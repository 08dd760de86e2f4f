import { describe, expect, test } from "vitest";
import { agentName, givenNamesIn, layerId, sandboxKey, sessionName, tenantId } from "../src/index.ts";

const idOf = (name: string) => tenantId.parse(name);
const problemOf = (name: string) => tenantId.safeParse(name).error?.issues[0]?.message;

describe("name as users have it", () => {
  test.each(["a", "acme", "a-b_c", "0", "a".repeat(63), "6f1c1a52-0d8e-4c1f-9d0a-7f1f3d5c7a10", "a--b"])(
    "a canonical name is its own id: %s",
    (name) => {
      expect(idOf(name)).toBe(name);
    },
  );

  test.each([
    ["bob@example.com", "bob-example-com--"],
    ["agent:main:telegram:-100", "agent-main-telegram-100--"],
    ["Acme", "acme--"],
    ["-a", "a--"],
    ["a".repeat(64), `${"a".repeat(35)}--`],
    ["Žižkov / 3. patro", "zizkov-3-patro--"],
    ["北京", "x--"],
    ["a.b", "a-b--"],
    ["../../etc/passwd", "etc-passwd--"],
    ["x'; rm -rf $(pwd) #", "x-rm-rf-pwd--"],
  ])("any other name becomes an id of at most 63 characters: %s", (name, slug) => {
    const id = idOf(name);
    expect(id).toMatch(/^[a-z0-9][a-z0-9-]{0,60}--[a-z2-7]{26}$/);
    expect(id.slice(0, -26)).toBe(slug);
    expect(id.length).toBeLessThanOrEqual(63);
    // Mapping an id again changes nothing.
    expect(idOf(id)).toBe(id);
    expect(sandboxKey.safeParse(`${id}.s.${sessionName.parse(name)}`).success).toBe(true);
    expect(agentName.parse(name)).toBe(id);
  });

  test("a name maps to the same id in every version of Berth", () => {
    expect(idOf("bob@example.com")).toBe("bob-example-com--l74gbpyrsbmwy4mivocr3nur6d");
    expect(idOf("agent:main:telegram:-100")).toBe("agent-main-telegram-100--2gdsqt6pzbd6aeceihc4lei5xa");
  });

  test("a name has one id however its letters are composed, and every other text another one", () => {
    const composed = "Zo\u00eb";
    expect(idOf("Zoe\u0308")).toBe(idOf(composed));
    const others = ["zo\u00eb", "Zoe", "Zo\u00eb.", "Zo\u0451", "ZO\u00cb", "Z\u043e\u00eb"];
    expect(new Set([composed, ...others].map(idOf)).size).toBe(others.length + 1);
  });

  test.each([
    ["", /is empty/],
    ["x".repeat(256), /longer than 255 bytes/],
    ["\u00e9".repeat(128), /longer than 255 bytes/],
    ["e\u0301".repeat(2_000), /longer than 255 bytes/],
    ["a\n", /U\+000A/],
    ["a\0b", /U\+0000/],
    ["\u001b[31mred", /U\+001B/],
    ["bob\u200b@example.com", /U\+200B/],
    ["bob\u202emoc", /U\+202E/],
    ["a\u2066b", /U\+2066/],
    ["\ufeffacme", /U\+FEFF/],
    ["a\u00adb", /U\+00AD/],
    ["a\u3164b", /U\+3164/],
    ["a\ufe0fb", /U\+FE0F/],
    ["a\u2028b", /U\+2028/],
    ["a\u00a0b", /U\+00A0/],
    ["a\ud800b", /U\+D800/],
    ["a\ufffdb", /U\+FFFD/],
    ["a\ue000b", /U\+E000/],
    [" a", /begins or ends with a space/],
    ["a ", /begins or ends with a space/],
    [".", /step of a path/],
    ["..", /step of a path/],
    ["shared", /reserved/],
  ])("a name that cannot be shown as it is, is refused: %j", (name, problem) => {
    expect(problemOf(name)).toMatch(problem);
  });

  test.each([
    ["a heart", "\u2764\ufe0f"],
    ["a family", "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}"],
    ["a rainbow flag", "\u{1f3f3}\ufe0f\u200d\u{1f308} team"],
    ["a keycap", "1\ufe0f\u20e3"],
    ["a Persian verb", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"],
    ["a Persian plural", "\u06a9\u062a\u0627\u0628\u200c\u0647\u0627"],
  ])("a name may have a character that joins or shapes its neighbours: %s", (_, name) => {
    expect(problemOf(name)).toBeUndefined();
    expect(idOf(name)).toMatch(/--[a-z2-7]{26}$/);
    expect(idOf(name)).not.toBe(idOf(name.replaceAll(/\u200c|\u200d|\ufe0f/g, "")));
  });

  test("a name with an emoji maps to the id that it had before emoji were allowed", () => {
    expect(idOf("Zo\u00eb \u2764")).toBe("zoe--gufth2n67n7t3g26iocbr7fr7x");
    expect(idOf("\u{1f600}")).toBe("x--6bcdunbml32upa5bcg2rxjlmso");
  });

  test("a name may have 255 bytes, counted after composition", () => {
    expect(idOf(`${"\u00e9".repeat(127)}x`)).toMatch(/--/);
    // Bytes count when it is composed.
    expect(idOf("e\u0301".repeat(127))).toBe(idOf("\u00e9".repeat(127)));
  });
});

test("a flag of a region, which tags make, may be a name", () => {
  expect(problemOf("\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}")).toBeUndefined();
});

describe("names that go with a job's ids", () => {
  const bob = "bob@example.com";

  test("a job keeps the given names that became other ids", () => {
    expect(givenNamesIn({ tenant: bob, session: "main", agent: "Zoe\u0308" })).toEqual({
      tenant: bob,
      agent: "Zo\u00eb",
    });
    expect(givenNamesIn({ tenant: "acme" })).toBeUndefined();
  });

  test("a job keeps a given name beside an id only if the name maps to that id", () => {
    const id = tenantId.parse(bob);
    expect(givenNamesIn({ tenant: id, names: { tenant: bob } })).toEqual({ tenant: bob });
    for (const tenant of ["eve@example.com", "BOB@example.com", id, "acme", "a\u202eb", 7, null, {}])
      expect(givenNamesIn({ tenant: id, names: { tenant } })).toBeUndefined();
    expect(givenNamesIn({ tenant: "acme", names: { tenant: bob } })).toBeUndefined();
    for (const names of [null, 7, "x", []]) expect(givenNamesIn({ tenant: id, names })).toBeUndefined();
  });
});

describe("id of a layer", () => {
  test("the id of a layer takes given names; one with a dot stands in quotes where two are named", () => {
    const [bob, zoe] = [idOf("bob@example.com"), idOf("Zo\u00eb")];
    expect(layerId.parse("tenant.bob@example.com")).toBe(`tenant.${bob}`);
    expect(layerId.parse('tenant."bob@example.com"')).toBe(`tenant.${bob}`);
    expect(layerId.parse("agent.acme.Zo\u00eb")).toBe(`agent.acme.${zoe}`);
    expect(layerId.parse('agent."bob@example.com".coder')).toBe(`agent.${bob}.coder`);
    expect(layerId.parse('agent."bob@example.com"."a.b"')).toBe(`agent.${bob}.${idOf("a.b")}`);
    const refused = ["agent.bob@example.com.coder", "agent.a", "agent.a.b.c", "tenant.", "tenant.a\u202eb"];
    for (const layer of [...refused, "fleet.x", "profile.A", "profile.a.b", "other.a", 'agent."a.b'])
      expect(layerId.safeParse(layer).success, layer).toBe(false);
  });
});
