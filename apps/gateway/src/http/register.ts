import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { dataOf, parseInput, parseItems } from "./parse-input.ts";
import { Problem } from "./problem.ts";
import type { AnyRoute } from "./route.ts";

/** The reason of every close. Shared, because an abort without a reason creates an error with a stack. */
const closed = new DOMException("the connection is closed, or the answer was given", "AbortError");

/** Adds routes to the server. A handler gets only input that passed the route's schemas. */
export function registerRoutes(app: FastifyInstance, routes: readonly AnyRoute[]): void {
  for (const route of routes) {
    app.route({
      method: route.method,
      url: route.path,
      config: {
        access: route.access,
        cost: route.cost ?? 1,
        raw: route.raw !== undefined,
        traced: route.tag !== "service",
      },
      handler: (request, reply) => answer(route, request, reply),
    });
  }
  refuseOtherMethods(app, routes);
}

async function answer(route: AnyRoute, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort(closed));
  const replied = await route.handle({
    params: checked(route.params, request.params, "path"),
    query: checked(route.query, request.query, "query"),
    headers: checked(route.headers, request.headers, "header"),
    body: await bodyOf(route, request.body),
    principal: request.principal,
    request,
    reply,
    signal: gone.signal,
  });
  if (replied === "sent") return reply;
  const { status, body, headers = {} } = replied as { status: number; body?: unknown; headers?: object };
  void reply.code(status).headers(headers as Record<string, string>);
  return reply.send(body);
}

function checked(schema: z.ZodType | undefined, value: unknown, where: string): unknown {
  if (!schema) {
    if (where !== "query" || Object.keys(value ?? {}).length === 0) return undefined;
    throw new Problem("invalid-request", "this takes no query", { problems: ["query: there is none here"] });
  }
  return dataOf(parseInput(schema, value ?? (where === "body" ? undefined : {})), where);
}

async function bodyOf({ body, items, raw }: AnyRoute, value: unknown): Promise<unknown> {
  if (!body || raw) return undefined;
  return items ? parseItems(items.schema, value, items.max) : checked(body, value, "body");
}

/** Answers other methods on known paths with 405 and the allowed methods. */
function refuseOtherMethods(app: FastifyInstance, routes: readonly AnyRoute[]): void {
  const byPath = Map.groupBy(routes, ({ path }) => path);
  for (const [path, known] of byPath) {
    const methods = known.map(({ method }) => method as string);
    const others = ["GET", "POST", "PUT", "DELETE", "PATCH"].filter((method) => !methods.includes(method));
    const access = known.every((one) => one.access === "open") ? "open" : "key";
    app.route({
      method: others,
      url: path,
      config: { access, raw: true },
      handler: async () => {
        throw new Problem("method-not-allowed", `allowed methods: ${methods.join(", ")}`, {
          headers: { allow: methods.join(", ") },
        });
      },
    });
  }
}
