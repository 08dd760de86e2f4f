import type { ScheduleView } from "@berth/client";
import { type ScheduleSpec, scheduleId, scheduleSpec } from "@berth/protocol";
import { z } from "zod";
import { Problem } from "../http/problem.ts";
import { type AnyRoute, route } from "../http/route.ts";
import { refuseShared } from "../jobs/submission.ts";
import { type AuditAction, noted } from "../keys/audit.ts";
import { shownId, storedId, storedIds } from "../keys/own-ids.ts";
import {
  agentFor,
  mayTouch,
  type Principal,
  refuseBeyondKey,
  refuseDestroy,
  refuseUngranted,
  tenantFor,
} from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import { scheduledOrder } from "../schemas/job.ts";
import { input, output } from "../schemas/registry.ts";

const params = z.object({ id: scheduleId });

const { id: _, order: __, ...timing } = scheduleSpec.shape;
const schedule = input(
  "Schedule",
  z.strictObject({
    ...timing,
    order: scheduledOrder.describe("what is run each time"),
  }),
);

const scheduleView = output(
  "ScheduleState",
  z.looseObject({
    id: z.string(),
    tenant: z.string(),
    cron: z.string().optional(),
    everyMs: z.number().optional(),
    timeZone: z.string(),
    catchUp: z.string(),
    paused: z.boolean().optional(),
    nextDueMs: z.number().optional().describe("absent: never again"),
    runs: z.number(),
    lastJobId: z.string().optional(),
    order: z.looseObject({}),
  }),
);

export function scheduleRoutes({ berth, audit }: Parts): AnyRoute[] {
  const put = route(
    {
      method: "PUT",
      path: "/v1/schedules/:id",
      tag: "schedules",
      summary: "Run a job on a schedule",
      about: "Makes the schedule or replaces it. With unchanged times it continues where it was.",
      access: "key",
      params,
      body: schedule,
      answers: { 200: { about: "As it is now", schema: scheduleView } },
    },
    async ({ params, body, principal, request }) => {
      const tenant = tenantFor(principal, body.order.tenant);
      refuseShared(body.order.scope, principal);
      refuseUngranted(principal, body.order);
      refuseDestroy(principal, body.order.request);
      const id = (await kept(params.id, principal))?.id ?? storedId(principal, params.id);
      refuseBeyondKey(principal, body.order.settings);
      const { settings: keySettings } = principal;
      const agent = agentFor(principal, body.order.agent);
      const order = { ...body.order, tenant, keySettings, ...(agent === undefined ? {} : { agent }) };
      const spec = { ...body, id, order };
      const made = await berth.schedules.put(spec, {
        // Checked inside the atomic change, so that another tenant's schedule cannot slip in between.
        replaceable: (known) => {
          if (!mayTouch(principal, ownerOf(known)))
            throw new Problem("conflict", "another schedule has this id");
        },
      });
      await audit.note("schedule.put", noted(request, id));
      return { status: 200, body: viewOf(made, principal) };
    },
  );

  const list = route(
    {
      method: "GET",
      path: "/v1/schedules",
      tag: "schedules",
      summary: "All schedules; with a tenant key, the tenant's",
      access: "key",
      cost: 50,
      answers: { 200: { about: "By id", schema: z.object({ schedules: z.array(scheduleView) }) } },
    },
    async ({ principal }) => {
      const all = await berth.schedules.list(
        principal.tenant === undefined ? {} : { tenant: principal.tenant },
      );
      const own = all.filter((one) => mayTouch(principal, ownerOf(one)));
      return { status: 200, body: { schedules: own.map((one) => viewOf(one, principal)) } };
    },
  );

  const look = route(
    {
      method: "GET",
      path: "/v1/schedules/:id",
      tag: "schedules",
      summary: "One schedule",
      access: "key",
      params,
      answers: { 200: { about: "The schedule", schema: scheduleView } },
    },
    async ({ params, principal }) => ({
      status: 200,
      body: viewOf(await find(params.id, principal), principal),
    }),
  );

  const change = (verb: "pause" | "resume", action: AuditAction, summary: string) =>
    route(
      {
        method: "POST",
        path: `/v1/schedules/:id/${verb}`,
        tag: "schedules",
        summary,
        access: "key",
        params,
        answers: { 200: { about: "As it is now", schema: scheduleView } },
      },
      async ({ params, principal, request }) => {
        const { id, order } = await find(params.id, principal);
        if (verb === "resume") refuseDestroy(principal, order.request);
        await berth.schedules[verb](id);
        await audit.note(action, noted(request, id));
        return { status: 200, body: viewOf(await find(params.id, principal), principal) };
      },
    );

  const remove = route(
    {
      method: "DELETE",
      path: "/v1/schedules/:id",
      tag: "schedules",
      summary: "Remove a schedule; jobs it has ordered already run all the same",
      access: "key",
      params,
      answers: { 204: { about: "It is gone" } },
    },
    async ({ params, principal, request }) => {
      const { id } = await find(params.id, principal);
      await berth.schedules.remove(id);
      await audit.note("schedule.removed", noted(request, id));
      return { status: 204 };
    },
  );

  async function find(id: string, principal: Principal): Promise<ScheduleView> {
    const known = await kept(id, principal);
    if (!known) throw new Problem("not-found", "there is no such schedule");
    return known;
  }

  /** The schedule of that id, if it exists and the caller may change it. */
  async function kept(id: string, principal: Principal): Promise<ScheduleView | undefined> {
    for (const stored of storedIds(principal, id)) {
      const known = await berth.schedules.get(stored);
      if (known && mayTouch(principal, ownerOf(known))) return known;
    }
    return undefined;
  }

  return [
    put,
    list,
    look,
    change("pause", "schedule.paused", "Run nothing of it until it is resumed"),
    change(
      "resume",
      "schedule.resumed",
      "Resume a schedule; its catchUp decides what happens to the runs it missed",
    ),
    remove,
  ];
}

function ownerOf({ order: { tenant } }: Pick<ScheduleSpec, "order">): string {
  return tenant;
}

function viewOf({ id, lastJobId, ...view }: ScheduleView, principal: Principal) {
  const shown = {
    ...view,
    id: shownId(principal, id),
    lastJobId: lastJobId === undefined ? undefined : shownId(principal, lastJobId),
    tenant: ownerOf(view),
    order: view.order as Record<string, unknown>,
  };
  // Omit the field instead of sending null or undefined.
  return JSON.parse(JSON.stringify(shown)) as z.infer<typeof scheduleView>;
}
