import type { AnyRoute } from "../http/route.ts";
import type { Parts } from "../parts.ts";
import { approvalRoutes } from "./approvals.ts";
import { artifactRoutes } from "./artifacts.ts";
import { batchRoutes } from "./batches.ts";
import { deadLetterRoutes } from "./dead-letters.ts";
import { docsRoutes } from "./docs.ts";
import { fleetRoutes } from "./fleet.ts";
import { healthRoutes } from "./health.ts";
import { indexRoutes } from "./index-page.ts";
import { jobEventRoutes } from "./job-events.ts";
import { jobRoutes } from "./jobs.ts";
import { keyRoutes } from "./keys.ts";
import { mcpRoutes } from "./mcp.ts";
import { metricsRoutes } from "./metrics.ts";
import { profileRoutes } from "./profiles.ts";
import { sandboxRoutes } from "./sandbox.ts";
import { scheduleRoutes } from "./schedules.ts";
import { secretRoutes } from "./secrets.ts";
import { sessionRoutes } from "./sessions.ts";
import { snapshotRoutes } from "./snapshots.ts";
import { tenantRoutes } from "./tenants.ts";
import { toolRoutes } from "./tools.ts";
import { usageRoutes } from "./usage.ts";

/** Every route of the gateway. */
export function allRoutes(parts: Parts): AnyRoute[] {
  const routes = [
    ...jobRoutes(parts),
    ...jobEventRoutes(parts),
    ...approvalRoutes(parts),
    ...artifactRoutes(parts),
    ...sandboxRoutes(parts),
    ...sessionRoutes(parts),
    ...mcpRoutes(parts),
    ...batchRoutes(parts),
    ...scheduleRoutes(parts),
    ...tenantRoutes(parts),
    ...usageRoutes(parts),
    ...secretRoutes(parts),
    ...toolRoutes(parts),
    ...snapshotRoutes(parts),
    ...profileRoutes(parts),
    ...fleetRoutes(parts),
    ...deadLetterRoutes(parts),
    ...keyRoutes(parts),
    ...healthRoutes(parts),
    ...metricsRoutes(parts),
    ...indexRoutes(parts),
  ];
  return [...routes, ...docsRoutes(routes)];
}
