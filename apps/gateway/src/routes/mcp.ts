import { answerMcpPost, defaultAnswerWithinMs } from "@berth/mcp";
import { givenAgent, givenSession, givenTenant, poolName, profileName, scope } from "@berth/protocol";
import { z } from "zod";
import { LongAnswer } from "../http/long-answer.ts";
import { type AnyRoute, type Call, route } from "../http/route.ts";
import { refuseShared, submissionHeaders } from "../jobs/submission.ts";
import { agentFor, refuseUngranted, tenantFor } from "../keys/principal.ts";
import { mcpPort } from "../mcp-port.ts";
import { version } from "../openapi/document.ts";
import type { Parts } from "../parts.ts";

const addressHeaders = submissionHeaders.omit({ "idempotency-key": true }).extend({
  "berth-tenant": headerText(givenTenant).optional().describe("whose sandbox; an admin key has to name one"),
  "berth-session": headerText(givenSession).optional().describe("its calls run in order; default: main"),
  "berth-scope": scope.optional().describe("which jobs share the sandbox; when absent: the tenant's default"),
  "berth-agent": headerText(givenAgent).optional().describe("agent that the jobs belong to"),
  "berth-profile": profileName.optional().describe("one that the tenant was granted"),
  "berth-pool": poolName.optional().describe("one that the tenant was granted"),
});

/** Node decodes headers as Latin-1; names are UTF-8. */
function headerText(name: z.ZodType<string, string>) {
  return z.preprocess(
    (value) => (typeof value === "string" ? Buffer.from(value, "latin1").toString() : value),
    name,
  );
}

/** One message. A batch would be many calls for the price of one. */
const message = z
  .looseObject({
    jsonrpc: z.literal("2.0"),
    method: z.string().max(256).optional(),
    id: z.union([z.string().max(256), z.number()]).optional(),
  })
  .describe("one JSON-RPC message of the Model Context Protocol");

type AddressHeaders = z.output<typeof addressHeaders>;

export function mcpRoutes(parts: Parts): AnyRoute[] {
  const post = route(
    {
      method: "POST",
      path: "/mcp",
      tag: "sandbox",
      summary: "A sandbox as tools of the Model Context Protocol",
      about:
        "Streamable HTTP without sessions, protocol revisions 2026-07-28 and 2025-11-25 and before. The headers choose the sandbox, so " +
        "that a model cannot. Answers are JSON, or server-sent events when there is progress to report. docs/mcp.md has the set-up of clients.",
      access: "key",
      headers: addressHeaders,
      body: message,
      answers: {
        200: { about: "The answer, as JSON or as server-sent events", type: "application/json" },
        202: { about: "A notification was taken" },
        400: { about: "The protocol does not allow that message", type: "application/json" },
        404: { about: "There is no such method", type: "application/json" },
        406: { about: "Accept has to name application/json and text/event-stream", type: "application/json" },
      },
    },
    async (call) => {
      const { body, principal, signal, request } = call;
      const named = addressOf(call);
      const { agent } = named;
      const tenant = tenantFor(principal, named.tenant);
      // The tools offer a session argument only if sessions share a sandbox, so find the scope once at the start.
      const address = { ...named, scope: named.scope ?? (await parts.berth.scopeOf(tenant, agent)) };
      const usesTools = body.method === "tools/list" || body.method === "tools/call";
      const tools = usesTools ? await parts.berth.tools.usableBy(named) : [];
      using _ = body.method === "tools/call" ? parts.waits.take(principal) : undefined;
      const onBug = (error: unknown) =>
        parts.log.error({ event: "mcp.failed", err: error, requestId: request.id });
      const response = await answerMcpPost(
        mcpPort(parts, { principal, tenant, headers: call.headers, onBug }),
        { headers: request.headers, body, signal },
        {
          address,
          tools,
          version,
          answerWithinMs: Math.min(defaultAnswerWithinMs, parts.config.maxWaitMs),
          stopping: parts.stopping,
          onError: () => {},
        },
      );
      const type = response.headers.get("content-type") ?? "";
      if (type.startsWith("text/event-stream")) {
        await passOn(call, response, type);
        return "sent";
      }
      const text = await response.text();
      // Pass on the status of the protocol's library; the declared ones are those it uses.
      const status = response.status as 200;
      return text === "" ? { status } : { status, headers: { "content-type": type }, body: text };
    },
  );
  return [post];
}

/** Checks the names in the headers first, so that a misconfigured client learns it when it connects. */
function addressOf({ headers, principal }: Call<unknown, unknown, AddressHeaders, unknown>) {
  const of = tenantFor(principal, headers["berth-tenant"], undefined, "the header Berth-Tenant");
  const address = {
    tenant: headers["berth-tenant"] ?? of,
    session: headers["berth-session"],
    scope: headers["berth-scope"],
    agent: agentFor(principal, headers["berth-agent"]),
    profile: headers["berth-profile"],
    pool: headers["berth-pool"],
  };
  refuseShared(address.scope, principal);
  refuseUngranted(principal, address);
  return address;
}

async function passOn(
  { reply, signal }: Pick<Call<unknown, unknown, unknown, unknown>, "reply" | "signal">,
  response: Response,
  type: string,
): Promise<void> {
  const answer = new LongAnswer(reply, type, signal);
  const decoder = new TextDecoder();
  try {
    for await (const bytes of response.body ?? [])
      await answer.write(decoder.decode(bytes, { stream: true }));
    answer.end();
  } catch {
    // Leaving the loop cancels the answer: the caller disconnected, or does not read.
    answer.breakOff();
  }
}
