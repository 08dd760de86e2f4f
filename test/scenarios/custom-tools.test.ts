import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished } from "vitest";
import { runCli } from "../support/cli.ts";
import { busybox } from "../support/fleet.ts";
import { adminKey, fleetTest as test } from "../support/gateway.ts";
import { McpSession } from "../support/mcp.ts";

const count = {
  description: "Counts the lines of a file that have a text",
  parameters: {
    text: { type: "string", description: "what to look for" },
    path: { type: "path" },
    invert: { type: "boolean", required: false },
  },
  argv: [
    "grep",
    "-c",
    "-F",
    { param: "invert", flag: "-v" },
    "-e",
    { param: "text" },
    "--",
    { param: "path" },
  ],
} as const;

describe("custom tool", () => {
  test("a custom tool is defined on the command line, and runs as a job, from the client and beside other steps", async ({
    fleet,
  }) => {
    const directory = await mkdtemp(join(tmpdir(), "berth-tools-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    await fleet.worker("worker-1", busybox);
    const env = { REDIS_URL: fleet.redis.url };
    const file = join(directory, "count.json");
    await writeFile(file, JSON.stringify(count));
    const cli = (...args: string[]) => runCli(["tool", ...args], { env });
    expect(await cli("set", "count", "--file", file)).toMatchObject({
      code: 0,
      stdout: "count is at version 1\n",
    });
    await writeFile(file, JSON.stringify({ ...count, argv: ["sh", "-c", { param: "text" }] }));
    const wrong = await cli("set", "count", "--file", file);
    expect(wrong.stderr).toMatch(/code for an interpreter.*path: nothing uses it/s);
    expect((await cli("ls", "acme")).stdout).toMatch(/count +text path \[invert\] +Counts the lines/);

    const acme = fleet.client().tenant("acme");
    await acme.write("a b.txt", "$(id)\nplain\n$(id) again\n");
    expect(await acme.tool("count", { text: "$(id)", path: "a b.txt" })).toMatchObject({
      ...{ outcome: { kind: "exited", code: 0 }, stdout: "2\n", text: "2\n" },
    });
    const steps = await acme.steps([
      { kind: "write", path: "b", content: "x\n" },
      { kind: "tool", name: "count", args: { text: "x", path: "b", invert: true } },
    ]);
    expect(steps.steps?.[1]).toMatchObject({ value: { stdout: "0\n" } });
    const ran = await cli("run", "acme", "count", "text=again", "path=a b.txt");
    expect(ran).toMatchObject({ code: 0, stdout: "1\n" });
    expect((await cli("run", "acme", "count", "txt=again")).stderr).toContain(
      "its parameters are text, path",
    );
    expect(await acme.tool("count", { path: "b" })).toMatchObject({
      outcome: { kind: "refused", code: "tool-refused", message: expect.stringContaining("text") },
    });
    await cli("rm", "count");
    expect(await acme.tool("count", { text: "x", path: "b" })).toMatchObject({
      outcome: { kind: "refused", code: "tool-refused", message: "the tool count: there is no such tool" },
    });
    expect(await fleet.client().deadLetters.list()).toEqual([]);
  });

  test("a custom tool is offered by MCP with its schema to those who may use it, and by HTTP", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1", busybox);
    const gateway = await gateways.start();
    const put = (name: string, body: object) => gateway.call("PUT", `/v1/tools/${name}`, { body });
    expect(await put("count", { ...count, effect: "reads" })).toMatchObject({
      status: 200,
      body: { version: 1 },
    });
    expect((await put("theirs", { description: "d", argv: ["id"], tenants: ["globex"] })).status).toBe(200);
    expect((await put("bash", { description: "d", argv: ["id"] })).status).toBe(400);
    const made = await gateway.call("POST", "/v1/keys", {
      body: { role: "tenant", tenant: "acme", name: "k" },
    });
    const key: string = made.body.token;
    expect((await gateway.call("PUT", "/v1/tools/mine", { key, body: count })).status).toBe(403);
    expect((await gateway.call("GET", "/v1/tools", { key })).body.tools).toMatchObject([{ name: "count" }]);

    const places = [
      await McpSession.http(gateway.url, { authorization: `Bearer ${key}` }),
      await McpSession.stdio(["--tenant", "acme"], { REDIS_URL: fleet.redis.url }),
      await McpSession.stdio(["--tenant", "acme"], { BERTH_URL: gateway.url, BERTH_KEY: adminKey }),
    ];
    for (const place of places) {
      await using mcp = place;
      const { tools } = await mcp.client.listTools();
      expect(tools.map(({ name }) => name).slice(-3)).toEqual(["count", "job", "sandbox"]);
      expect(tools.find(({ name }) => name === "count")).toMatchObject({
        description: count.description,
        annotations: { readOnlyHint: true },
        inputSchema: {
          required: ["text", "path"],
          properties: {
            text: { type: "string", description: "what to look for" },
            invert: { type: "boolean" },
          },
        },
      });
      await mcp.call("write", { file_path: "f", content: "one\ntwo\n" });
      expect(await mcp.call("count", { text: "o", path: "f" })).toMatchObject({
        text: "2\n",
        isError: false,
      });
      expect(await mcp.call("count", { text: "o", path: "../f" })).toMatchObject({ isError: true });
    }
    const { entries } = (await gateway.call("GET", "/v1/audit")).body;
    expect(entries[entries.length - 1]).toMatchObject({ action: "tool.set", target: "count version 1" });
  });

  test("a custom tool runs only under its profile, which the tenant needs a grant for", async ({ fleet }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    await berth.profiles.set("profile.ci", { env: { PLACE: "ci" } });
    await berth.tools.set("place", { description: "d", argv: ["sh", "-c", "echo $PLACE"], profile: "ci" });
    expect(await acme.tool("place")).toMatchObject({
      outcome: { code: "tool-refused", message: expect.stringContaining("under the profile ci only") },
    });
    expect(await acme.tool("place", {}, { profile: "ci" })).toMatchObject({
      outcome: { code: "not-granted" },
    });
    await acme.grant({ profiles: ["ci"] });
    expect(await acme.tool("place", {}, { profile: "ci" })).toMatchObject({ stdout: "ci\n" });
    const env = { REDIS_URL: fleet.redis.url };
    expect(await runCli(["tool", "run", "acme", "place"], { env })).toMatchObject({
      code: 0,
      stdout: "ci\n",
    });
  });
});
