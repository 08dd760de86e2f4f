import { givenTenant, secretName, secretValue } from "@berth/protocol";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { Problem } from "../http/problem.ts";
import { type AnyRoute, route } from "../http/route.ts";
import { type AuditAction, noted } from "../keys/audit.ts";
import { tenantFor } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import { input } from "../schemas/registry.ts";

const ofTenant = z.object({ tenant: givenTenant });
const params = ofTenant.extend({ name: secretName.describe("the variable that commands find it in") });
const body = input(
  "SecretValue",
  z.strictObject({ value: secretValue.describe("at least 8 bytes; no answer ever has it") }),
);

/** A tenant's stored secrets, for admin keys and the tenant's own. No route reads a value back. */
export function secretRoutes({ berth, audit }: Parts): AnyRoute[] {
  const note = (action: AuditAction, request: FastifyRequest, target: string) =>
    audit.note(action, noted(request, target));

  const list = route(
    {
      method: "GET",
      path: "/v1/tenants/:tenant/secrets",
      tag: "secrets",
      summary: "Names of a tenant's secrets",
      access: "key",
      params: ofTenant,
      answers: { 200: { about: "In order", schema: z.object({ names: z.array(z.string()) }) } },
    },
    async ({ params, principal }) => {
      const tenant = tenantFor(principal, params.tenant);
      return { status: 200, body: { names: await berth.secrets.names(tenant) } };
    },
  );

  const put = route(
    {
      method: "PUT",
      path: "/v1/tenants/:tenant/secrets/:name",
      tag: "secrets",
      summary: "Store a secret, or replace its value",
      about:
        "It is sealed before it is stored. Commands that begin from now on have it in their environment.",
      access: "key",
      params,
      body,
      answers: { 204: { about: "It is stored" } },
    },
    async ({ params, principal, body, request }) => {
      const tenant = tenantFor(principal, params.tenant);
      await berth.secrets.set(params.tenant, params.name, body.value);
      await note("secret.set", request, `${tenant} ${params.name}`);
      return { status: 204 };
    },
  );

  const rotate = route(
    {
      method: "POST",
      path: "/v1/tenants/:tenant/secrets/:name/rotate",
      tag: "secrets",
      summary: "Replace the value of an existing secret",
      about: "The old value is masked as well for as long as its sandbox is held.",
      access: "key",
      params,
      body,
      answers: { 204: { about: "It has the new value" } },
    },
    async ({ params, principal, body, request }) => {
      const tenant = tenantFor(principal, params.tenant);
      await berth.secrets.set(params.tenant, params.name, body.value, { mustExist: true });
      await note("secret.rotated", request, `${tenant} ${params.name}`);
      return { status: 204 };
    },
  );

  const remove = route(
    {
      method: "DELETE",
      path: "/v1/tenants/:tenant/secrets/:name",
      tag: "secrets",
      summary: "Remove a secret",
      access: "key",
      params,
      answers: { 204: { about: "Commands that begin from now on do not have it" } },
    },
    async ({ params, principal, request }) => {
      const tenant = tenantFor(principal, params.tenant);
      if (!(await berth.secrets.remove(tenant, params.name)))
        throw new Problem("not-found", `${tenant} has no secret ${params.name}`);
      await note("secret.removed", request, `${tenant} ${params.name}`);
      return { status: 204 };
    },
  );

  const reencrypt = route(
    {
      method: "POST",
      path: "/v1/secrets/reencrypt",
      tag: "secrets",
      summary: "Seal every stored secret with the first key",
      about: "The last step of replacing the sealing key. It may be run again.",
      access: "admin",
      answers: {
        200: {
          about: "How many were sealed anew",
          schema: z.object({
            resealed: z.number(),
            unchanged: z.number(),
            unreadable: z
              .array(z.string())
              .describe("`<tenant> <name>` of those that no configured key opens"),
          }),
        },
      },
    },
    async ({ request }) => {
      const done = await berth.secrets.reencrypt();
      await note("secrets.reencrypted", request, `${done.resealed} secrets`);
      return { status: 200, body: { ...done, unreadable: [...done.unreadable] } };
    },
  );

  return [list, put, rotate, remove, reencrypt];
}
