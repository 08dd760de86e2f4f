import { type AnyRoute, route } from "../http/route.ts";
import { docsPage, docsPolicy } from "../openapi/docs-page.ts";
import { openApiDocument } from "../openapi/document.ts";

/** The OpenAPI document of all other routes, and its page. */
export function docsRoutes(routes: readonly AnyRoute[]): AnyRoute[] {
  let made: { readonly json: string; readonly page: string } | undefined;
  const make = () => {
    if (!made) {
      const document = openApiDocument([...routes, ...own]);
      made = { json: JSON.stringify(document), page: docsPage(document) };
    }
    return made;
  };
  const own = [
    route(
      {
        method: "GET",
        path: "/openapi.json",
        tag: "service",
        summary: "This API as an OpenAPI 3.1 document",
        access: "open",
        answers: { 200: { about: "The document", type: "application/json" } },
      },
      async () => ({ status: 200, headers: { "content-type": "application/json" }, body: make().json }),
    ),
    route(
      {
        method: "GET",
        path: "/docs",
        tag: "service",
        summary: "The same as a page",
        access: "open",
        answers: { 200: { about: "The page", type: "text/html" } },
      },
      async () => ({
        status: 200,
        headers: { "content-type": "text/html; charset=utf-8", "content-security-policy": docsPolicy },
        body: make().page,
      }),
    ),
  ];
  return own;
}
