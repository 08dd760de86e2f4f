import { readFile } from "node:fs/promises";
import { expect } from "vitest";
import { docBlocks } from "./support/doc-blocks.ts";
import { adminKey, test } from "./support/gateway.ts";
import { McpSession } from "./support/mcp.ts";

test("docs/mcp.md names every tool with its arguments", async ({ gateways }) => {
  const page = await readFile(new URL("../docs/mcp.md", import.meta.url), "utf8");
  const gateway = await gateways.start();
  const headers = { authorization: `Bearer ${adminKey}`, "berth-tenant": "acme", "berth-scope": "session" };
  await using mcp = await McpSession.http(gateway.url, headers);
  const { tools } = await mcp.client.listTools();
  const argumentsOf = (tool: string) =>
    Object.keys(tools.find(({ name }) => name === tool)?.inputSchema.properties ?? {});
  const rows = [...page.matchAll(/^\| `(\w+)` \| (.*?) \| .* \|$/gm)].map(([, name = "", words = ""]) => ({
    name,
    named: [...words.matchAll(/`(\w+)`/g)].map(([, word = ""]) => word),
  }));
  expect(rows.map(({ name }) => name)).toEqual(tools.map(({ name }) => name));
  for (const { name, named } of rows.filter((row) => row.name !== "run_code"))
    expect(named, name).toEqual(argumentsOf(name));
  const ofBash = argumentsOf("bash").filter((name) => name !== "command");
  expect(argumentsOf("run_code")).toEqual(["code", "language", ...ofBash]);
});

test("the JSON in docs/mcp.md can be pasted as it is", async () => {
  const blocks = await docBlocks("docs/mcp.md", ["json"]);
  expect(blocks.map(({ code }) => typeof JSON.parse(code))).toEqual(["object", "object", "object"]);
});
