import type { TraceContext, Tracing } from "@berth/service";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { submissionHeaders } from "../jobs/submission.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Ends its span before its answer does; absent when it has none. */
    endSpan: (() => void) | undefined;
  }
  interface FastifyContextConfig {
    /** Its requests have spans. Probes, metrics, pages and Bull Board's polling have none. */
    traced?: boolean;
  }
}

const traceHeaders = submissionHeaders.pick({ traceparent: true, tracestate: true });

/**
 * One span for each request of a traced route. Of the request itself only the method and the route's pattern are in it: paths
 * and queries hold names and ids that are the caller's.
 */
export function traceRequests(app: FastifyInstance, tracing: Tracing): void {
  app.decorateRequest("endSpan", undefined);
  app.addHook("onRequest", async (request, reply) => {
    const { config, url: route } = request.routeOptions;
    if (!config.traced || route === undefined) return;
    const { method } = request;
    const caller = callerOf(request);
    const span = tracing.begin({
      name: `${method} ${route}`,
      kind: "server",
      parent: caller.context,
      attributes: {
        "http.request.method": method,
        "http.route": route,
        "url.scheme": request.protocol,
        "berth.request.id": request.id,
      },
    });
    if (caller.valid) continueIn(span.context, request);
    request.endSpan = () => {
      const { statusCode } = reply.raw;
      span.end({
        attributes: { "http.response.status_code": statusCode },
        error: statusCode >= 500 ? String(statusCode) : undefined,
      });
    };
    // `close`, not `finish`: an answer to a client that has gone is never finished, but always closed.
    reply.raw.once("close", request.endSpan);
  });
}

/** What does not fit is left as it is: the routes that take a trace context say what is wrong with it. */
function callerOf({ headers }: FastifyRequest): { valid: boolean; context?: TraceContext | undefined } {
  const { success, data } = traceHeaders.safeParse(headers);
  if (!success) return { valid: false };
  const { traceparent, tracestate } = data;
  return { valid: true, context: traceparent === undefined ? undefined : { traceparent, tracestate } };
}

/** From here on the request is its span's: jobs are given this context where they would be given the caller's. */
function continueIn({ traceparent, tracestate }: TraceContext, { headers }: FastifyRequest): void {
  headers.traceparent = traceparent;
  if (tracestate === undefined) delete headers.tracestate;
  else headers.tracestate = tracestate;
}
