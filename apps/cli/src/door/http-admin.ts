import type { Approval, SnapshotView, WholeApproval } from "@berth/client";
import type { LayerChange } from "@berth/protocol";
import type {
  ApprovalsDoor,
  DeadLetter,
  DeadLettersDoor,
  KeysDoor,
  KeyView,
  ProfilesDoor,
  SchedulesDoor,
  ScheduleView,
  SecretsDoor,
  SnapshotsDoor,
  StoredLayer,
  StoredTool,
  TenantsDoor,
  ToolsDoor,
  ToolView,
} from "../door.ts";
import { type HttpCalls, path } from "./http-call.ts";

/** Answers of the gateway's admin routes. */
export function httpTenants(calls: HttpCalls): TenantsDoor {
  return {
    holdings: (tenant) => calls.json("GET", path`/v1/tenants/${tenant}`),
    used: (tenant, { from, to }) =>
      calls.json("GET", path`/v1/tenants/${tenant}/usage`, { query: { from, to } }),
    usedByAll: ({ from, to, limit }) => calls.json("GET", "/v1/usage", { query: { from, to, limit } }),
    pause: (tenant) => calls.json("POST", path`/v1/tenants/${tenant}/pause`),
    resume: (tenant) => calls.json("POST", path`/v1/tenants/${tenant}/resume`),
    grant: (tenant, body) => calls.json("POST", path`/v1/tenants/${tenant}/grant`, { body }),
    revoke: (tenant, body) => calls.json("POST", path`/v1/tenants/${tenant}/revoke`, { body }),
    destroy: async (tenant) =>
      (await calls.json<{ jobs: string[] }>("DELETE", path`/v1/tenants/${tenant}`)).jobs,
  };
}

export function httpProfiles(calls: HttpCalls): ProfilesDoor {
  const of = (layer: string) => path`/v1/profiles/${layer}`;
  return {
    list: async () => (await calls.json<{ layers: StoredLayer[] }>("GET", "/v1/profiles")).layers,
    get: (layer) => calls.find<StoredLayer>("GET", of(layer)),
    set: (layer, body, ifVersion) => calls.json("PUT", of(layer), { body, query: { ifVersion } }),
    remove: (layer) => calls.isThere("DELETE", of(layer)),
    diff: async (layer, body) =>
      (await calls.json<{ changes: LayerChange[] }>("POST", `${of(layer)}/diff`, { body })).changes,
    history: async (layer) =>
      (await calls.json<{ entries: StoredLayer[] }>("GET", `${of(layer)}/history`)).entries,
    rollback: (layer, version) => calls.json("POST", `${of(layer)}/rollback`, { body: { version } }),
  };
}

export function httpSecrets(calls: HttpCalls): SecretsDoor {
  const of = (tenant: string, name: string) => path`/v1/tenants/${tenant}/secrets/${name}`;
  return {
    set: (tenant, name, value, { mustExist }) =>
      mustExist
        ? calls.json("POST", `${of(tenant, name)}/rotate`, { body: { value } })
        : calls.json("PUT", of(tenant, name), { body: { value } }),
    names: async (tenant) =>
      (await calls.json<{ names: string[] }>("GET", path`/v1/tenants/${tenant}/secrets`)).names,
    remove: (tenant, name) => calls.isThere("DELETE", of(tenant, name)),
    reencrypt: () => calls.json("POST", "/v1/secrets/reencrypt"),
  };
}

export function httpSnapshots(calls: HttpCalls): SnapshotsDoor {
  const of = (tenant: string) => path`/v1/tenants/${tenant}/snapshots`;
  return {
    list: async (tenant) => (await calls.json<{ snapshots: SnapshotView[] }>("GET", of(tenant))).snapshots,
    remove: (tenant, name) => calls.isThere("DELETE", path`/v1/tenants/${tenant}/snapshots/${name}`),
  };
}

export function httpApprovals(calls: HttpCalls): ApprovalsDoor {
  return {
    list: async (tenant) =>
      (await calls.json<{ approvals: Approval[] }>("GET", "/v1/approvals", { query: { tenant } })).approvals,
    get: (jobId) => calls.find<WholeApproval>("GET", path`/v1/approvals/${jobId}`),
    approve: ({ jobId, digest }) =>
      calls.json("POST", path`/v1/approvals/${jobId}/approve`, { body: { digest } }),
    refuse: ({ jobId, digest }, reason) =>
      calls.json("POST", path`/v1/approvals/${jobId}/refuse`, { body: { reason, digest } }),
  };
}

export function httpTools(calls: HttpCalls): ToolsDoor {
  const of = (name: string) => path`/v1/tools/${name}`;
  return {
    usableBy: async ({ tenant, agent, profile }) =>
      (await calls.json<{ tools: ToolView[] }>("GET", "/v1/tools", { query: { tenant, agent, profile } }))
        .tools,
    list: async () => (await calls.json<{ tools: StoredTool[] }>("GET", "/v1/fleet/tools")).tools,
    get: (name) => calls.find<StoredTool>("GET", of(name)),
    set: (name, body, ifVersion) => calls.json("PUT", of(name), { body, query: { ifVersion } }),
    remove: (name) => calls.isThere("DELETE", of(name)),
  };
}

export function httpSchedules(calls: HttpCalls): SchedulesDoor {
  return {
    put: ({ id, ...body }) => calls.json<ScheduleView>("PUT", path`/v1/schedules/${id}`, { body }),
    list: async () => (await calls.json<{ schedules: ScheduleView[] }>("GET", "/v1/schedules")).schedules,
    pause: (id) => calls.isThere("POST", path`/v1/schedules/${id}/pause`),
    resume: (id) => calls.isThere("POST", path`/v1/schedules/${id}/resume`),
    remove: (id) => calls.isThere("DELETE", path`/v1/schedules/${id}`),
  };
}

export function httpDeadLetters(calls: HttpCalls): DeadLettersDoor {
  return {
    list: async (query) =>
      (await calls.json<{ letters: DeadLetter[] }>("GET", "/v1/dead-letters", { query })).letters,
    redrive: async (jobId) =>
      (await calls.find<{ jobId: string }>("POST", path`/v1/dead-letters/${jobId}/redrive`))?.jobId,
    remove: (jobId) => calls.isThere("DELETE", path`/v1/dead-letters/${jobId}`),
  };
}

export function httpKeys(calls: HttpCalls): KeysDoor {
  return {
    create: (body) => calls.json("POST", "/v1/keys", { body }),
    list: async () => (await calls.json<{ keys: KeyView[] }>("GET", "/v1/keys")).keys,
    revoke: (id) => calls.isThere("DELETE", path`/v1/keys/${id}`),
  };
}
