import type { TraceContext, Tracing } from "@berth/service";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { submissionHeaders } from "../jobs/submission.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Ends the request's span before its answer; absent when it has none. */
    endSpan: (() => void) | undefined;
  }
  interface FastifyContextConfig {
    /** Marks routes with spans. Probes, metrics, pages and Bull Board's polling have none. */
    traced?: boolean;
  }
}

const traceHeaders = submissionHeaders.pick({ traceparent: true, tracestate: true });

/**
 * One span per request of a traced route. It records only the method and the route's pattern: paths and queries contain the
 * caller's names and ids.
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
    // `close`, not `finish`: when the client disconnects, only `close` is emitted.
    reply.raw.once("close", request.endSpan);
  });
}

/** Ignores an invalid trace context here; routes that accept one report the error. */
function callerOf({ headers }: FastifyRequest): { valid: boolean; context?: TraceContext | undefined } {
  const { success, data } = traceHeaders.safeParse(headers);
  if (!success) return { valid: false };
  const { traceparent, tracestate } = data;
  return { valid: true, context: traceparent === undefined ? undefined : { traceparent, tracestate } };
}

/** Replaces the caller's trace context with the span's, so that jobs become children of the span. */
function continueIn({ traceparent, tracestate }: TraceContext, { headers }: FastifyRequest): void {
  headers.traceparent = traceparent;
  if (tracestate === undefined) delete headers.tracestate;
  else headers.tracestate = tracestate;
}
