import type { Metrics } from "@berth/service";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import type { Failure } from "./http/failure.ts";

const secondsBounds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Paths that machines poll every few seconds: at `info` they would fill the log. */
const probes: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

/** Writes one log line and one count per answer. Never a payload, header or query: those may hold secrets. */
export class AnswerRecord {
  readonly #log: Logger;
  readonly #requests;
  readonly #seconds;

  constructor(log: Logger, metrics: Metrics) {
    this.#log = log;
    this.#requests = metrics.counter("berth_http_requests_total", "Requests answered, by route and status.", [
      "method",
      "route",
      "status",
    ]);
    this.#seconds = metrics.histogram(
      "berth_http_request_seconds",
      "From a request's headers to the end of its answer; event streams as long as they are open.",
      ["method", "route"],
      secondsBounds,
    );
  }

  onAnswer(request: FastifyRequest, reply: FastifyReply): void {
    const route = request.routeOptions.url ?? "none";
    const { method } = request;
    const status = reply.raw.statusCode;
    this.#requests.inc({ method, route, status });
    this.#seconds.observe({ method, route }, reply.elapsedTime / 1_000);
    this.#log[probes.has(route) ? "debug" : "info"]({
      event: "http.answered",
      requestId: request.id,
      method,
      route,
      status,
      ms: Math.round(reply.elapsedTime),
      key: request.principal?.id,
      ip: request.callerAddress,
    });
  }

  onFailure(request: FastifyRequest, failure: Failure, error: unknown): void {
    if (!failure.ours) return;
    const { code, status } = failure;
    const level = code === "internal" ? "error" : "warn";
    this.#log[level]({ event: "http.failed", requestId: request.id, code, status, err: error });
  }
}
