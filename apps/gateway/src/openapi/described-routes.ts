import { defaultConfig } from "../config.ts";
import type { AnyRoute } from "../http/route.ts";
import type { Parts } from "../parts.ts";
import { allRoutes } from "../routes/index.ts";

/** The routes without their dependencies, to describe and not to call. */
export function describedRoutes(): AnyRoute[] {
  return allRoutes({ config: defaultConfig() } as Parts);
}
