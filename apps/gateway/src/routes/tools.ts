import { agentName, profileName, tenantId, toolName } from "@berth/protocol";
import { z } from "zod";
import { Problem } from "../http/problem.ts";
import { type AnyRoute, route } from "../http/route.ts";
import { noted } from "../keys/audit.ts";
import { tenantFor } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import { input, output } from "../schemas/registry.ts";

const params = z.object({ name: toolName });

const definition = input(
  "ToolDefinition",
  z
    .record(z.string(), z.unknown())
    .describe(
      'as in docs/tools.md, such as {"description": "Lints", "argv": ["ruff", "check", {"param": "path"}], …}',
    ),
);
const described = {
  name: z.string(),
  version: z.number().describe("grows with every change"),
};
const toolView = output(
  "Tool",
  z.object({
    ...described,
    description: z.string(),
    parameters: z.record(z.string(), z.unknown()).describe("by name; docs/tools.md has their fields"),
    effect: z.string(),
    profile: z.string().optional().describe("it runs under this profile only"),
  }),
);
const storedTool = output(
  "StoredTool",
  z.object({
    ...described,
    atMs: z.number(),
    by: z.string().describe("who made the change"),
    definition: z.record(z.string(), z.unknown()),
  }),
);

/** Custom tools. Jobs of kind `tool` run them. */
export function toolRoutes({ berth, audit }: Parts): AnyRoute[] {
  const list = route(
    {
      method: "GET",
      path: "/v1/tools",
      tag: "tools",
      summary: "Custom tools that a tenant's jobs may use",
      access: "key",
      query: z.strictObject({
        tenant: tenantId.optional().describe("an admin key has to name one"),
        agent: agentName.optional(),
        profile: profileName.optional().describe("only tools that run under it"),
      }),
      answers: { 200: { about: "By name", schema: z.object({ tools: z.array(toolView) }) } },
    },
    async ({ query: { tenant, ...rest }, principal }) => {
      const tools = await berth.tools.usableBy({ tenant: tenantFor(principal, tenant), ...rest });
      return { status: 200, body: { tools } };
    },
  );

  const all = route(
    {
      method: "GET",
      path: "/v1/fleet/tools",
      tag: "tools",
      summary: "All custom tools, with their definitions",
      access: "admin",
      answers: { 200: { about: "By name", schema: z.object({ tools: z.array(storedTool) }) } },
    },
    async () => ({ status: 200, body: { tools: await berth.tools.list() } }),
  );

  const get = route(
    {
      method: "GET",
      path: "/v1/tools/:name",
      tag: "tools",
      summary: "One custom tool, with its definition",
      access: "admin",
      params,
      answers: { 200: { about: "As it is now", schema: storedTool } },
    },
    async ({ params: { name } }) => {
      const found = await berth.tools.get(name);
      if (!found) throw new Problem("not-found", `there is no tool ${name}`);
      return { status: 200, body: found };
    },
  );

  const put = route(
    {
      method: "PUT",
      path: "/v1/tools/:name",
      tag: "tools",
      summary: "Define a custom tool, or replace it",
      about:
        "As a whole, or not at all: 400 names every problem. Jobs that begin from now on use the new definition.",
      access: "admin",
      params,
      query: z.strictObject({
        ifVersion: z.coerce
          .number()
          .int()
          .min(0)
          .optional()
          .describe("refuse unless the tool has this version; 0: unless there is none"),
      }),
      body: definition,
      answers: { 200: { about: "As it is now", schema: storedTool } },
    },
    async ({ params: { name }, query, body, request }) => {
      const options = { by: `key ${request.principal.id}`, ...query };
      const now = await berth.tools.set(name, body as Parameters<typeof berth.tools.set>[1], options);
      await audit.note("tool.set", noted(request, `${name} version ${now.version}`));
      return { status: 200, body: now };
    },
  );

  const remove = route(
    {
      method: "DELETE",
      path: "/v1/tools/:name",
      tag: "tools",
      summary: "Remove a custom tool",
      access: "admin",
      params,
      answers: { 204: { about: "Jobs that call it are refused from now on" } },
    },
    async ({ params: { name }, request }) => {
      if (!(await berth.tools.remove(name))) throw new Problem("not-found", `there is no tool ${name}`);
      await audit.note("tool.removed", noted(request, name));
      return { status: 204 };
    },
  );

  return [list, all, get, put, remove];
}
