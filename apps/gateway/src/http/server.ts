import type { IncomingMessage } from "node:http";
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Tracing } from "@berth/service";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { nanoid } from "nanoid";
import type { Config } from "../config.ts";
import type { Authenticator } from "../keys/authenticate.ts";
import type { Principal } from "../keys/principal.ts";
import { type BodyLimits, parseJson, readBody } from "./body.ts";
import { BodyBudget, type BodyHold, type BodyOwner } from "./body-budget.ts";
import { callerAddress } from "./caller-address.ts";
import { type Failure, failureOf } from "./failure.ts";
import { refuseAmbiguous, refuseForeignCallers } from "./header-guard.ts";
import { boundLateBody } from "./late-bodies.ts";
import { answerAndLinger } from "./lingering-close.ts";
import { Problem, type ProblemCode, problemBody, problemTable, problemType } from "./problem.ts";
import { traceRequests } from "./request-spans.ts";
import type { Access } from "./route.ts";

declare module "fastify" {
  interface FastifyRequest {
    principal: Principal;
    /** For logs, the audit log and the login limit; never for a permission. */
    callerAddress: string;
    /** Counts the body's bytes until the answer is sent: parsed, a body needs at least as much memory. */
    bodyHold: BodyHold;
  }
  interface FastifyContextConfig {
    access?: Access;
    cost?: number;
    /** The handler reads the body itself. */
    raw?: boolean;
  }
}

export interface ServerParts {
  readonly config: Config;
  readonly authenticator: Authenticator;
  readonly tracing?: Tracing | undefined;
  /** Fires when the gateway is stopping. */
  readonly stopping: AbortSignal;
  /** Called with each answer, for the log and the metrics. */
  readonly onAnswer: (request: FastifyRequest, reply: FastifyReply) => void;
  readonly onFailure: (request: FastifyRequest, failure: Failure, error: unknown) => void;
}

const maxHeaderBytes = 16 * 1024;
/** Longer than any id and any escaped name of 255 bytes: a longer parameter names nothing. */
const maxParamLength = 2_048;
/** How often Node checks for connections whose headers are late. */
const lateLookMs = 1_000;

/** The server without routes: limits, authentication, bodies, and error handling. */
export function makeServer(parts: ServerParts): FastifyInstance {
  const { config } = parts;
  const budget = new BodyBudget(config.maxBodiesBytes);
  const app: FastifyInstance = fastify({
    http: {
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: config.maxHeadersMs,
      connectionsCheckingInterval: Math.min(lateLookMs, config.maxHeadersMs),
      requireHostHeader: true,
      // The default joins some repeated headers; the important ones are refused in any case.
      joinDuplicateHeaders: false,
    },
    // `readBody` has its own timer. A batch may take hours while data keeps coming.
    requestTimeout: 0,
    keepAliveTimeout: 65_000,
    routerOptions: { maxParamLength, ignoreTrailingSlash: false, caseSensitive: true },
    exposeHeadRoutes: false,
    genReqId: () => nanoid(),
    logger: false,
    trustProxy: false,
    return503OnClosing: false,
    forceCloseConnections: "idle",
    clientErrorHandler: answerBrokenClient,
    frameworkErrors: (error, request, reply) => sendFailure(parts, error, request, reply),
  });
  // Beyond this, Node closes new connections without reading.
  app.server.maxConnections = config.maxConnections;
  // Without a listener Node closes the socket of a CONNECT request without an answer.
  app.server.on("connect", (_, socket) => endWith(socket as Socket, "method-not-allowed"));
  app.decorateRequest("principal", null as unknown as Principal);
  app.decorateRequest("callerAddress", "");
  app.decorateRequest("bodyHold", null as unknown as BodyHold);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", async (request: FastifyRequest, payload: IncomingMessage) =>
    request.routeOptions.config.raw
      ? undefined
      : parseJson(await readBody(payload, limitsOf(config, request))),
  );
  app.addContentTypeParser("application/x-ndjson", async (request: FastifyRequest) => {
    if (!request.routeOptions.config.raw)
      throw new Problem("unsupported-media-type", "send application/json");
  });
  // Before anything can refuse the request, so that refusals get a span too.
  if (parts.tracing) traceRequests(app, parts.tracing);
  app.addHook("onRequest", async (request, reply) => {
    request.callerAddress = callerAddress(request, config.trustedProxies);
    void reply.header("x-request-id", request.id).header("x-content-type-options", "nosniff");
    void reply.header("cache-control", "no-store");
    if (parts.stopping.aborted) throw new Problem("unavailable", "this gateway is stopping");
    refuseAmbiguous(request);
    const { access = "open", cost = 1 } = request.routeOptions.config;
    if (access !== "open" && (await parts.authenticator.isOpen())) refuseForeignCallers(request);
    request.principal = await parts.authenticator.authenticate(request, access, cost);
    request.bodyHold = budget.hold(ownerOf(request.principal));
    // `close`, not `finish`: when the client disconnects, only `close` is emitted.
    reply.raw.once("close", request.bodyHold.end);
  });
  app.addHook("onSend", async (_, reply) => {
    // A kept-alive connection would delay the gateway's stop.
    if (parts.stopping.aborted) void reply.header("connection", "close");
  });
  app.addHook("onResponse", async (request, reply) => {
    boundLateBody(request);
    parts.onAnswer(request, reply);
  });
  app.setErrorHandler((error, request, reply) => sendFailure(parts, error, request, reply));
  app.setNotFoundHandler((request, reply) =>
    sendFailure(
      parts,
      new Problem("not-found", `there is no route ${request.url.split("?", 1)[0]}`),
      request,
      reply,
    ),
  );
  return app;
}

function ownerOf({ id, tenant, ceilings }: Principal): BodyOwner {
  if (tenant === undefined) return { id, most: 0 };
  return { id: `tenant ${tenant}`, tenant, most: ceilings?.bodyBytes ?? 0 };
}

export function limitsOf(config: Config, { principal, bodyHold }: FastifyRequest): BodyLimits {
  return {
    maxBytes: principal.bodyBytes,
    maxMs: config.maxBodyMs,
    onBytes: bodyHold.take,
  };
}

function sendFailure(parts: ServerParts, error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const failure = failureOf(error, request.principal);
  parts.onFailure(request, failure, error);
  if (reply.raw.headersSent) {
    reply.raw.destroy();
    return;
  }
  const body = JSON.stringify(problemBody(failure, request.id));
  void reply.code(failure.status).headers(failure.headers).header("content-type", problemType);
  const isComing = !request.raw.complete && !request.raw.destroyed;
  if (isComing && !parts.stopping.aborted) {
    answerAndLinger(reply, failure.status, body);
    return;
  }
  if (!request.raw.complete) void reply.header("connection", "close");
  void reply.serializer(String).send(body);
}

const brokenCodes: Readonly<Record<string, ProblemCode>> = {
  HPE_HEADER_OVERFLOW: "headers-too-large",
  ERR_HTTP_REQUEST_TIMEOUT: "request-timeout",
};

/** Handles requests that did not parse. There is no request to answer, only a socket. */
function answerBrokenClient(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  endWith(socket, brokenCodes[error.code ?? ""] ?? "malformed-request");
}

function endWith(socket: Socket, code: ProblemCode): void {
  const { status, title } = problemTable[code];
  const body = JSON.stringify(problemBody({ code, status, title, detail: title.toLowerCase() }));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `content-type: ${problemType}`,
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}
