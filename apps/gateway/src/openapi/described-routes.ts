import { defaultConfig } from "../config.ts";
import type { AnyRoute } from "../http/route.ts";
import type { Parts } from "../parts.ts";
import { allRoutes } from "../routes/index.ts";

/** The routes with nothing behind them: to be described, not to be called. */
export function describedRoutes(): AnyRoute[] {
  return allRoutes({ config: defaultConfig() } as Parts);
}
