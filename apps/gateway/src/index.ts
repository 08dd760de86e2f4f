export type { AnyRoute } from "./http/route.ts";
export { ApiKeys } from "./keys/api-keys.ts";
export { describedRoutes } from "./openapi/described-routes.ts";
export { openApiDocument } from "./openapi/document.ts";
