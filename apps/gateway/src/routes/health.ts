import { countLiveWorkers } from "@berth/ledger";
import { workerGoneMs } from "@berth/protocol";
import { within } from "@berth/service";
import { z } from "zod";
import { type AnyRoute, route } from "../http/route.ts";
import type { Parts } from "../parts.ts";
import { output } from "../schemas/registry.ts";

const redisAnswersMs = 2_000;

const readiness = output(
  "Readiness",
  z.object({ ready: z.boolean(), reasons: z.array(z.string()).describe("why it is not") }),
);

export function healthRoutes(parts: Parts): AnyRoute[] {
  const health = route(
    {
      method: "GET",
      path: "/healthz",
      tag: "service",
      summary: "Whether this process answers",
      access: "open",
      answers: { 200: { about: "It does", schema: z.object({ alive: z.literal(true) }) } },
    },
    async () => ({ status: 200, body: { alive: true } }),
  );

  const ready = route(
    {
      method: "GET",
      path: "/readyz",
      tag: "service",
      summary: "Whether work can be taken: Redis answers, and a worker lives",
      access: "open",
      answers: {
        200: { about: "It can", schema: readiness },
        503: { about: "It cannot; the reasons", schema: readiness },
      },
    },
    async () => {
      const reasons = await reasonsAgainst();
      return { status: reasons.length === 0 ? 200 : 503, body: { ready: reasons.length === 0, reasons } };
    },
  );

  async function reasonsAgainst(): Promise<string[]> {
    if (parts.stopping.aborted) return ["this gateway is stopping"];
    const live = await within(redisAnswersMs, countLiveWorkers(parts.redis, workerGoneMs));
    if (live === undefined) return ["Redis does not answer"];
    return live === 0 ? ["no worker is alive"] : [];
  }

  return [health, ready];
}
