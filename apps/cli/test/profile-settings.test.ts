import { describe, expect, test } from "vitest";
import { withAssignments, withoutFields } from "../src/profile-settings.ts";

describe("settings on the command line", () => {
  test("settings on the command line are put into a layer as the fields want them", () => {
    const before = { limits: { cpus: 2 }, env: { A: "1" } };
    const texts = ["limits.memoryBytes=256m", "images=a,b", "networks=[]", "env.TEAM=blue=1", "profile=net"];
    expect(withAssignments(before, texts)).toEqual({
      limits: { cpus: 2, memoryBytes: "256m" },
      env: { A: "1", TEAM: "blue=1" },
      images: ["a", "b"],
      networks: [],
      profile: "net",
    });
    expect(before).toEqual({ limits: { cpus: 2 }, env: { A: "1" } });
  });

  test("settings on the command line are taken out again, with a group that has nothing left", () => {
    const before = { limits: { cpus: 2 }, env: { A: "1", B: "2" }, mode: "off" };
    expect(withoutFields(before, ["limits.cpus", "env.A", "mode"])).toEqual({ env: { B: "2" } });
  });

  test("settings on the command line that name no field are refused with the nearest one", () => {
    expect(() => withAssignments({}, ["limits.memorybytes=1g"])).toThrow(
      expect.objectContaining({
        message: "a profile has no field limits.memorybytes",
        advice: ["did you mean limits.memoryBytes?"],
      }),
    );
    expect(() => withoutFields({}, ["limits"])).toThrow("a profile has no field limits");
    expect(() => withAssignments({}, ["mode"])).toThrow("mode is not FIELD=VALUE");
  });
});
