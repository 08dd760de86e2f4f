import { Problem } from "../http/problem.ts";
import { type AnyRoute, route } from "../http/route.ts";
import { smallPage, smallPagePolicy } from "../http/small-page.ts";
import { version } from "../openapi/document.ts";
import type { Parts } from "../parts.ts";

/** A start page for people who have only the gateway's address. */
export function indexRoutes({ config }: Parts): AnyRoute[] {
  const metricsAreOpen = config.metricsAccess === "open";
  const links = [
    ...(config.board === "off"
      ? []
      : [["/board/", "Board", "the fleet's queues and jobs; log in with an admin key"]]),
    ["/docs", "API", "every route of this gateway"],
    ["/openapi.json", "OpenAPI", "the same for programs"],
    [
      "/metrics",
      "Metrics",
      `for Prometheus${metricsAreOpen ? "" : "; with an admin key, once there is one"}`,
    ],
    ["/readyz", "Ready?", "whether work can be taken"],
  ];
  const rows = links.map(([path, name, says]) => `<dt><a href="${path}">${name}</a></dt><dd>${says}</dd>`);
  const page = smallPage("Berth", `<p>A gateway, version ${version}.</p><dl>${rows.join("\n")}</dl>`);
  return [
    route(
      {
        method: "GET",
        path: "/",
        tag: "service",
        summary: "A page that leads to the board, the docs and the metrics",
        access: "open",
        answers: { 200: { about: "The page", type: "text/html" } },
      },
      async ({ request }) => {
        // `GET *` would match here too.
        if (!request.url.startsWith("/")) throw new Problem("not-found", "there is no such page");
        const type = "text/html; charset=utf-8";
        return {
          status: 200,
          headers: { "content-type": type, "content-security-policy": smallPagePolicy },
          body: page,
        };
      },
    ),
  ];
}
