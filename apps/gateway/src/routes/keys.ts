import {
  egressUse,
  givenAgent,
  givenTenant,
  poolName,
  profileName,
  sharedOwner,
  tenantId,
  tighteningLayer,
} from "@berth/protocol";
import { z } from "zod";
import { Problem } from "../http/problem.ts";
import { type AnyRoute, route } from "../http/route.ts";
import { noted } from "../keys/audit.ts";
import type { Parts } from "../parts.ts";
import { input, output } from "../schemas/registry.ts";

const positive = z.number().int().positive();
const entryId = z.string().regex(/^\d{1,15}-\d{1,15}$/, { error: "not the id of an entry" });

const egressView = output(
  "EgressEntry",
  z.object({
    id: z.string(),
    atMs: z.number(),
    sandbox: z.string(),
    worker: z.string(),
    jobs: z.array(z.string()).readonly().describe("that ran meanwhile; none: background processes"),
    ...egressUse.shape,
  }),
);

const newKey = input(
  "NewKey",
  z
    .strictObject({
      role: z.enum(["admin", "tenant"]),
      tenant: givenTenant.optional().describe("for a tenant key: the one tenant it opens"),
      profiles: z
        .array(profileName)
        .max(100)
        .optional()
        .describe(
          "of a tenant key: profiles that its jobs may name besides `default`; granted to its tenant",
        ),
      pools: z.array(poolName).max(100).optional().describe("of a tenant key: the same of pools"),
      agent: givenAgent
        .optional()
        .describe("of a tenant key: its jobs are all this agent's, and held to that agent's layer"),
      settings: tighteningLayer
        .optional()
        .describe("of a tenant key: its jobs get no more than this; fields of docs/profiles.md"),
      name: z.string().min(1).max(100).describe("for people; not secret"),
      expiresInSeconds: positive.max(10 * 365 * 86_400).optional(),
      rate: positive.max(1_000_000).optional().describe("requests a second at one gateway"),
      bodyBytes: positive.optional().describe("largest request body; the gateway's own limit still holds"),
    })
    .refine(({ role, tenant }) => (role === "tenant") === (tenant !== undefined), {
      path: ["tenant"],
      error: "a tenant key has a tenant, an admin key has none",
    })
    .refine(
      ({ role, profiles, pools, agent, settings }) =>
        role === "tenant" || (profiles ?? pools ?? agent ?? settings) === undefined,
      {
        path: ["profiles"],
        error: "an admin key may use all profiles and pools; leave profiles, pools, agent and settings out",
      },
    ),
);

const keyView = output(
  "Key",
  z.object({
    id: z.string(),
    role: z.enum(["admin", "tenant"]),
    tenant: z.string().optional(),
    tenantName: z.string().optional().describe("as it was given, where the id is another"),
    profiles: z.array(z.string()).optional().describe("that its jobs may name; absent: all"),
    pools: z.array(z.string()).optional(),
    agent: z.string().optional().describe("whose its jobs all are"),
    settings: z.looseObject({}).optional().describe("what its jobs are held to"),
    name: z.string(),
    createdAtMs: z.number(),
    expiresAtMs: z.number().optional(),
    usedAtMs: z.number().optional().describe("within a minute"),
    rate: z.number().optional(),
    bodyBytes: z.number().optional(),
  }),
);

const auditView = output(
  "AuditEntry",
  z.object({
    id: z.string(),
    atMs: z.number(),
    action: z.string(),
    actor: z.string().describe("the key's id; `admin` is the configured one"),
    target: z.string(),
    from: z.string().describe("address"),
  }),
);

export function keyRoutes(parts: Parts): AnyRoute[] {
  const { keys, audit, egressLog, authenticator, config } = parts;

  const create = route(
    {
      method: "POST",
      path: "/v1/keys",
      tag: "keys",
      summary: "Make a key",
      about: "The token is shown this once; Redis has only its hash.",
      access: "admin",
      body: newKey,
      answers: { 201: { about: "Made", schema: z.object({ token: z.string(), key: keyView }) } },
    },
    async ({ body, request }) => {
      if (body.role === "tenant" && !(await hasAdmin())) {
        throw new Problem(
          "conflict",
          "make an admin key first: with any key there, only an admin key can make more",
        );
      }
      const { expiresInSeconds, ...rest } = body;
      const expiresAtMs = expiresInSeconds === undefined ? undefined : Date.now() + expiresInSeconds * 1_000;
      const made = await keys.create({ ...rest, expiresAtMs });
      authenticator.forget();
      await audit.note("key.created", noted(request, made.key.id));
      return { status: 201, body: made, headers: { location: `/v1/keys/${made.key.id}` } };
    },
  );

  const list = route(
    {
      method: "GET",
      path: "/v1/keys",
      tag: "keys",
      summary: "All keys, without their secrets",
      access: "admin",
      answers: { 200: { about: "The oldest first", schema: z.object({ keys: z.array(keyView) }) } },
    },
    async () => ({ status: 200, body: { keys: await keys.list() } }),
  );

  const revoke = route(
    {
      method: "DELETE",
      path: "/v1/keys/:id",
      tag: "keys",
      summary: "Revoke a key",
      about:
        "Within two seconds no gateway accepts it; event streams it opened end with their next heartbeat. Revoking the last " +
        "key does not open the gateway: set BERTH_ADMIN_KEY to get in again.",
      access: "admin",
      params: z.object({ id: z.string().regex(/^[a-z0-9]{12}$/, { error: "not the id of a key" }) }),
      answers: { 204: { about: "It is revoked" } },
    },
    async ({ params, request }) => {
      const all = await keys.list();
      if (!all.some(({ id }) => id === params.id)) throw new Problem("not-found", "there is no such key");
      const admins = all.filter(({ role, id }) => role === "admin" && id !== params.id);
      if (config.adminKey === undefined && all.length > 1 && admins.length === 0) {
        throw new Problem(
          "conflict",
          "it is the last admin key: without one, the others could not be revoked",
        );
      }
      await keys.revoke(params.id);
      authenticator.forget();
      await audit.note("key.revoked", noted(request, params.id));
      return { status: 204 };
    },
  );

  const read = route(
    {
      method: "GET",
      path: "/v1/audit",
      tag: "keys",
      summary: "What administrators did",
      access: "admin",
      query: z.strictObject({
        before: entryId.optional().describe("id of the last entry of the page before"),
        limit: z.coerce.number().int().min(1).max(1_000).default(100),
      }),
      answers: { 200: { about: "The latest first", schema: z.object({ entries: z.array(auditView) }) } },
    },
    async ({ query }) => ({ status: 200, body: { entries: await audit.list(query) } }),
  );

  const readEgress = route(
    {
      method: "GET",
      path: "/v1/audit/egress",
      tag: "keys",
      summary: "What a tenant's sandboxes sent and received, by host",
      access: "admin",
      query: z.strictObject({
        tenant: tenantId
          .describe("also `shared`, the sandbox that all tenants share")
          .or(z.literal(sharedOwner)),
        before: entryId.optional().describe("id of the last entry of the page before"),
        limit: z.coerce.number().int().min(1).max(1_000).default(100),
      }),
      answers: { 200: { about: "The latest first", schema: z.object({ entries: z.array(egressView) }) } },
    },
    async ({ query: { tenant, ...page } }) => ({
      status: 200,
      body: { entries: await egressLog.list(tenant, page) },
    }),
  );

  async function hasAdmin(): Promise<boolean> {
    return config.adminKey !== undefined || (await keys.list()).some(({ role }) => role === "admin");
  }

  return [create, list, revoke, read, readEgress];
}
