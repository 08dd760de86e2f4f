import type { LayerChange } from "@berth/protocol";
import type {
  DeadLetter,
  DeadLettersDoor,
  KeysDoor,
  KeyView,
  ProfilesDoor,
  SchedulesDoor,
  ScheduleView,
  StoredLayer,
  TenantsDoor,
} from "../door.ts";
import { type HttpCalls, path } from "./http-call.ts";

/** A gateway's answers of what operators do. */
export function httpTenants(calls: HttpCalls): TenantsDoor {
  return {
    usage: (tenant) => calls.json("GET", path`/v1/tenants/${tenant}`),
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
