import { workerId } from "@berth/protocol";
import { z } from "zod";
import { Problem } from "../http/problem.ts";
import { type AnyRoute, route } from "../http/route.ts";
import { noted } from "../keys/audit.ts";
import type { Parts } from "../parts.ts";
import { output } from "../schemas/registry.ts";
import { sandboxView } from "../schemas/sandbox.ts";

const workerView = output(
  "Worker",
  z.object({
    id: z.string(),
    host: z.string(),
    pools: z.array(z.string()),
    slots: z.number(),
    held: z.number().describe("sandboxes it holds"),
    running: z.number().describe("jobs that run"),
    parked: z.number().describe("containers that it keeps for their sandboxes' next jobs"),
    parkedBytes: z.number().describe("the memory of these"),
    warm: z.number().describe("containers that it started ahead of time and that wait for a sandbox"),
    openNetworks: z
      .array(z.string())
      .describe("`NAME (NETWORK)` of profiles whose commands reach networks that no rule filters"),
    warmWhy: z.string().describe("why there can be none, or have been none lately; empty when there can"),
    quotaWhy: z
      .string()
      .describe("why the file system enforces no quota of new workspaces; empty when it does"),
    link: z
      .string()
      .describe(
        "what carried commands and files of the last sandbox: `unix`, a socket; `stdio`, the engine, which is slower; or `none` yet",
      ),
    disk: z.string().describe("`ok`, or why nothing may grow in its sandboxes"),
    health: z.string().describe("`ok`, or why no sandbox can be had there"),
    load: z.number(),
    version: z.string(),
    lastSeenMs: z.number(),
  }),
);

const scaleView = output(
  "Scale",
  z.object({
    waitingSandboxes: z.number().describe("sandboxes with work that no worker holds"),
    oldestWaitMs: z.number(),
    unfinishedJobs: z.number(),
    workers: z.number(),
    slots: z.number(),
    freeSlots: z.number(),
  }),
);

export function fleetRoutes({ berth, audit }: Parts): AnyRoute[] {
  const workers = route(
    {
      method: "GET",
      path: "/v1/fleet/workers",
      tag: "fleet",
      summary: "The workers that are alive",
      access: "admin",
      answers: { 200: { about: "The workers", schema: z.object({ workers: z.array(workerView) }) } },
    },
    async () => ({ status: 200, body: { workers: await berth.workers() } }),
  );

  const sandboxes = route(
    {
      method: "GET",
      path: "/v1/fleet/sandboxes",
      tag: "fleet",
      summary: "Sandboxes, the most recently used first",
      access: "admin",
      query: z.strictObject({ limit: z.coerce.number().int().min(1).max(10_000).default(1_000) }),
      answers: { 200: { about: "The sandboxes", schema: z.object({ sandboxes: z.array(sandboxView) }) } },
    },
    async ({ query }) => ({ status: 200, body: { sandboxes: await berth.sandboxes(query) } }),
  );

  const scale = route(
    {
      method: "GET",
      path: "/v1/fleet/scale",
      tag: "fleet",
      summary: "What an autoscaler needs, zeros included",
      access: "admin",
      answers: { 200: { about: "Now", schema: scaleView } },
    },
    async () => ({ status: 200, body: await berth.scale() }),
  );

  const drain = route(
    {
      method: "POST",
      path: "/v1/fleet/workers/:worker/drain",
      tag: "fleet",
      summary: "Drain a worker: it takes no more jobs, finishes what runs, and exits",
      access: "admin",
      params: z.object({ worker: workerId }),
      answers: { 202: { about: "The worker was asked to drain" } },
    },
    async ({ params, request }) => {
      const known = (await berth.workers()).some(({ id }) => id === params.worker);
      if (!known) throw new Problem("not-found", "no worker of that id is alive");
      await audit.note("worker.drained", noted(request, params.worker));
      await berth.drain(params.worker);
      return { status: 202 };
    },
  );

  return [workers, sandboxes, scale, drain];
}
