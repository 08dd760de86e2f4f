import type { StoredLayer } from "@berth/client";
import { givenLayer } from "@berth/protocol";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { Problem } from "../http/problem.ts";
import { type AnyRoute, route } from "../http/route.ts";
import { type AuditAction, noted } from "../keys/audit.ts";
import type { Parts } from "../parts.ts";
import { input, output } from "../schemas/registry.ts";

const params = z.object({
  layer: givenLayer.describe("fleet, profile.NAME, tenant.ID or agent.TENANT.NAME"),
});
const version = z.coerce.number().int().min(0);
const query = z.strictObject({
  ifVersion: version.optional().describe("refuse unless the layer has this version; 0: unless there is none"),
});

const settings = input(
  "ProfileLayer",
  z
    .record(z.string(), z.unknown())
    .describe('fields of docs/profiles.md, such as {"limits": {"memoryBytes": "1g"}, "network": "none"}'),
);

const layerView = output(
  "StoredLayer",
  z.object({
    layer: z.string(),
    version: z.number(),
    atMs: z.number(),
    by: z.string().describe("who made the change"),
    settings: z.record(z.string(), z.unknown()).nullable().describe("null: it was removed"),
    problems: z.array(z.string()).optional().describe("why this version of Berth cannot use it"),
  }),
);
const changesView = z.object({
  changes: z.array(z.object({ path: z.string(), from: z.unknown().optional(), to: z.unknown().optional() })),
});

/** The live layers of the profiles. */
export function profileRoutes({ berth, audit }: Parts): AnyRoute[] {
  const note = (action: AuditAction, request: FastifyRequest, { layer, version }: StoredLayer) =>
    audit.note(action, noted(request, `${layer} version ${version}`));
  const by = (request: FastifyRequest) => `key ${request.principal.id}`;

  const list = route(
    {
      method: "GET",
      path: "/v1/profiles",
      tag: "profiles",
      summary: "All live layers",
      about: "Settings from the workers' own files and variables are not shown.",
      access: "admin",
      answers: { 200: { about: "By id", schema: z.object({ layers: z.array(layerView) }) } },
    },
    async () => ({ status: 200, body: { layers: (await berth.profiles.list()).map(viewOf) } }),
  );

  const get = route(
    {
      method: "GET",
      path: "/v1/profiles/:layer",
      tag: "profiles",
      summary: "One live layer",
      access: "admin",
      params,
      answers: { 200: { about: "As it is now", schema: layerView } },
    },
    async ({ params }) => ({ status: 200, body: viewOf(await existing(params.layer)) }),
  );

  const put = route(
    {
      method: "PUT",
      path: "/v1/profiles/:layer",
      tag: "profiles",
      summary: "Replace a live layer",
      about:
        "As a whole, or not at all: 400 names every problem. Workers apply it at once; idle sandboxes that it concerns are rebuilt " +
        "before their next job, busy ones when their jobs have ended.",
      access: "admin",
      params,
      query,
      body: settings,
      answers: { 200: { about: "As it is now", schema: layerView } },
    },
    async ({ params, query, body, request }) => {
      const now = await berth.profiles.set(params.layer, body, { by: by(request), ...query });
      await note("profile.set", request, now);
      return { status: 200, body: viewOf(now) };
    },
  );

  const remove = route(
    {
      method: "DELETE",
      path: "/v1/profiles/:layer",
      tag: "profiles",
      summary: "Remove a live layer",
      about: "Its history stays for 90 days, and it can be rolled back to.",
      access: "admin",
      params,
      query,
      answers: { 204: { about: "The layer is removed" } },
    },
    async ({ params, query, request }) => {
      await existing(params.layer);
      const now = await berth.profiles.set(params.layer, null, { by: by(request), ...query });
      await note("profile.removed", request, now);
      return { status: 204 };
    },
  );

  const diff = route(
    {
      method: "POST",
      path: "/v1/profiles/:layer/diff",
      tag: "profiles",
      summary: "What a new layer would change",
      about: "Refused as the change itself would be. Nothing is changed.",
      access: "admin",
      params,
      body: settings,
      answers: { 200: { about: "Field by field", schema: changesView } },
    },
    async ({ params, body }) => ({
      status: 200,
      body: { changes: await berth.profiles.diff(params.layer, body) },
    }),
  );

  const history = route(
    {
      method: "GET",
      path: "/v1/profiles/:layer/history",
      tag: "profiles",
      summary: "What a layer was after each of its last 50 changes",
      access: "admin",
      params,
      answers: { 200: { about: "The latest first", schema: z.object({ entries: z.array(layerView) }) } },
    },
    async ({ params }) => ({
      status: 200,
      body: { entries: (await berth.profiles.history(params.layer)).map(viewOf) },
    }),
  );

  const rollback = route(
    {
      method: "POST",
      path: "/v1/profiles/:layer/rollback",
      tag: "profiles",
      summary: "Restore an earlier version of a layer",
      about: "A change like any other: it gets a version of its own.",
      access: "admin",
      params,
      query,
      body: z.strictObject({ version: z.number().int().min(1).describe("one of its history") }),
      answers: { 200: { about: "As it is now", schema: layerView } },
    },
    async ({ params, query, body, request }) => {
      const now = await berth.profiles.rollback(params.layer, body.version, { by: by(request), ...query });
      await note("profile.rolled-back", request, now);
      return { status: 200, body: viewOf(now) };
    },
  );

  async function existing(layer: string): Promise<StoredLayer> {
    const found = await berth.profiles.get(layer);
    if (!found) throw new Problem("not-found", `there is no live layer ${layer}`);
    return found;
  }

  return [list, get, put, remove, diff, history, rollback];
}

function viewOf({ settings, problems, ...rest }: StoredLayer) {
  const shown = settings as Record<string, unknown> | null;
  return { ...rest, settings: shown, ...(problems ? { problems: [...problems] } : {}) };
}
