export type { AnyRoute } from "./http/route.ts";
export { describedRoutes } from "./openapi/described-routes.ts";
export { openApiDocument } from "./openapi/document.ts";
