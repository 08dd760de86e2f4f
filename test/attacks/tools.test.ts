import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";

describe("hostile caller of a custom tool", () => {
  test("no argument of a custom tool becomes a shell line, an option, a path outside or another program", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    await berth.tools.set("show", {
      description: "d",
      parameters: { word: { type: "string" }, file: { type: "path", required: false } },
      argv: ["printf", "[%s]", { param: "word" }, { param: "file" }],
    });
    const words = ["$(id)", "`id`", "; id", "a\nb", "'\"", "$PATH", "\\x", "*", "%s", "a && touch ran"];
    for (const word of words)
      expect(await acme.tool("show", { word }), word).toMatchObject({ stdout: `[${word}]` });
    expect(await acme.tool("show", { word: "x", file: "-rf" })).toMatchObject({
      stdout: "[x][/workspace/-rf]",
    });
    const refused = { outcome: { kind: "refused", code: "tool-refused" } };
    for (const args of [
      { word: "-n" },
      { word: "x", file: "../../etc/passwd" },
      { word: "x", file: "/etc/passwd" },
      { word: "x", argv: ["id"] },
      { word: "x", __proto__: undefined, constructor: "id" },
      { word: ["a", "b"] },
      { word: "x\0y" },
      { word: "x".repeat(5_000) },
    ])
      expect(await acme.tool("show", args as never), JSON.stringify(args)).toMatchObject(refused);
    expect(await acme.exec("ls -A")).toMatchObject({ stdout: "" });
  });

  test("a custom tool does not bypass a rule, and changing a tool does not bypass an approval", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    const define = (text: string) =>
      berth.tools.set("leave", { description: "d", argv: ["sh", "-c", `echo ${text} >> log; cat log`] });
    await define("first");
    await berth.profiles.set("tenant.acme", { rules: [{ commands: { deny: ["echo"] } }] });
    expect(await acme.tool("leave")).toMatchObject({ outcome: { code: "denied-by-rule" } });
    await berth.profiles.set("tenant.acme", { rules: [{ kinds: { deny: ["tool:le*"] } }] });
    expect(await acme.steps([{ kind: "tool", name: "leave" }])).toMatchObject({
      outcome: { code: "denied-by-rule" },
    });

    await berth.profiles.set("tenant.acme", { rules: [{ approval: { kinds: ["tool:leave"] } }] });
    const job = await acme.tool("leave").enqueued();
    const seen = async () => (await berth.approvals.list())[0];
    const preview = async () => (await seen())?.preview;
    await expect.poll(preview).toContain("echo first");
    const first = await seen();
    if (!first) throw new Error("it does not wait");
    await define("second");
    await berth.approvals.approve(first);
    // The approval was of the first command: the job asks again, with the second.
    await expect.poll(preview).toContain("echo second");
    await expect(berth.approvals.approve(first)).rejects.toMatchObject({ context: { state: "changed" } });
    const second = await seen();
    if (second) await berth.approvals.approve(second);
    expect(await job.result).toMatchObject({ value: { stdout: "second\n" } });
  });
});
