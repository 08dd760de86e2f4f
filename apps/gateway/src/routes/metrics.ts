import { Metrics } from "@berth/service";
import { type AnyRoute, route } from "../http/route.ts";
import type { Parts } from "../parts.ts";

export function metricsRoutes(parts: Parts): AnyRoute[] {
  const read = route(
    {
      method: "GET",
      path: "/metrics",
      tag: "service",
      summary: "Counts and times for Prometheus",
      access: parts.config.metricsAccess === "open" ? "open" : "admin",
      answers: { 200: { about: "Prometheus' text format", type: "text/plain; version=0.0.4" } },
    },
    async () => ({
      status: 200,
      headers: { "content-type": Metrics.contentType },
      body: await parts.metrics.text(),
    }),
  );
  return [read];
}
