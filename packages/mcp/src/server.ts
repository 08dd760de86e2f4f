import { artifactId, givenSession, maxInlineBytes } from "@berth/protocol";
import {
  type CallToolResult,
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  ResourceTemplate,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { answerShape, artifactUri } from "./answer.ts";
import { type CustomTool, jobToolOf } from "./custom-tools.ts";
import type { FleetPort } from "./port.ts";
import { type Call, Toolbox, type ToolboxOptions } from "./toolbox.ts";
import { jobTools } from "./tools.ts";

export interface ServerOptions extends ToolboxOptions {
  readonly version: string;
  /** Whether a closed connection cancels its calls. */
  readonly cancelsWhenClosed: boolean;
  /** Custom tools that this sandbox's jobs may use. */
  readonly tools?: readonly CustomTool[] | undefined;
}

/** An operator may define another tool at any time, so the list may change. */
const cacheHint = { ttlMs: 60_000, cacheScope: "private" } as const;
const never = new AbortController().signal;

const instructions =
  "A Linux sandbox of your own. Files live under /workspace and stay between calls; paths are relative to it. " +
  "Calls of one session run one after the other.";

/** A server for one connection or one request, with every tool. */
export function makeMcpServer(
  port: FleetPort,
  options: ServerOptions,
): { server: McpServer; toolbox: Toolbox } {
  const toolbox = new Toolbox(port, options);
  const server = new McpServer(
    { name: "berth", title: "Berth", version: options.version },
    {
      capabilities: { tools: { listChanged: false }, resources: { listChanged: false } },
      cacheHints: { "tools/list": cacheHint },
      instructions,
    },
  );
  const callOf = (context: ServerContext, session?: unknown): Call => ({
    cancelled: options.cancelsWhenClosed ? context.mcpReq.signal : never,
    notify: notifier(context),
    session: session as string | undefined,
  });
  const register = (
    name: string,
    about: { title: string; description: string; readOnly: boolean; destructive: boolean },
    shape: z.ZodRawShape,
    run: (args: Record<string, unknown>, context: ServerContext) => Promise<CallToolResult>,
  ) => {
    const { title, description, readOnly, destructive } = about;
    server.registerTool(
      name,
      {
        title,
        description,
        inputSchema: z.strictObject({ ...shape, ...sessionShape(toolbox) }),
        outputSchema: answerShape,
        annotations: { title, readOnlyHint: readOnly, destructiveHint: destructive, openWorldHint: false },
      },
      run,
    );
  };
  const custom = (options.tools ?? []).map(jobToolOf);
  for (const { name, shape, request, profile, ...about } of [...jobTools, ...custom])
    register(name, about, shape, ({ session, ...args }, context) =>
      toolbox.run(request(args), { ...callOf(context, session), profile }),
    );
  register(
    "job",
    {
      title: "Go on with a job",
      description:
        "Waits for a job that was still running when its call was answered, and returns its output. With action cancel it ends the job.",
      readOnly: false,
      destructive: false,
    },
    {
      id: z.string().min(1).max(256).describe("the job's id, from an earlier answer"),
      action: z.enum(["wait", "cancel"]).default("wait"),
      after: z
        .string()
        .regex(/^\d{1,20}-\d{1,20}$/, { error: "after is what an earlier answer gave as after" })
        .optional()
        .describe("show only output behind this; from an earlier answer"),
    },
    ({ id, action, after, session }, context) =>
      toolbox.job({ id, action, after } as Parameters<Toolbox["job"]>[0], callOf(context, session)),
  );
  register(
    "sandbox",
    {
      title: "Look at the sandbox, or start over",
      description:
        "status reports where the sandbox is and what waits for it. reset removes all its files and processes and makes an empty one. " +
        "destroy only removes it.",
      readOnly: false,
      destructive: true,
    },
    { action: z.enum(["status", "reset", "destroy"]).default("status") },
    ({ action, session }, context) => {
      const call = callOf(context, session);
      return action === "status" ? toolbox.status(call) : toolbox.end(action as "reset" | "destroy", call);
    },
  );
  registerArtifacts(server, port);
  return { server, toolbox };
}

/** The session argument, offered only where sessions share a sandbox. Elsewhere another session would have other files. */
function sessionShape({ address: { scope = "tenant", session = "main" } }: Toolbox): z.ZodRawShape {
  if (scope === "session") return {};
  const about = `calls of one session run in order; name another to run beside it in the same sandbox; default: ${session}`;
  return {
    session: givenSession.optional().describe(about),
  };
}

function notifier({ mcpReq }: ServerContext): Call["notify"] {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  return (progress, message) =>
    mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, message } });
}

function registerArtifacts(server: McpServer, port: FleetPort): void {
  const template = new ResourceTemplate(artifactUri("{id}"), { list: undefined });
  const about = { title: "Artifact", description: "A file that a job left; tool answers link to it" };
  server.registerResource("artifact", template, about, async (uri, { id }) => {
    const known = artifactId.safeParse(id);
    const found = known.success ? await fetched(port, known.data) : undefined;
    if (!found)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        "there is no such artifact, or it has expired",
      );
    const mimeType = found.mime ?? "application/octet-stream";
    return { contents: [{ uri: uri.href, mimeType, blob: found.bytes.toString("base64") }] };
  });
}

async function fetched(
  port: FleetPort,
  id: string,
): Promise<{ bytes: Buffer; mime?: string | undefined } | undefined> {
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    const found = await port.artifact(id);
    if (!found) return undefined;
    for await (const part of found.bytes) {
      size += part.length;
      if (size > maxInlineBytes) break;
      parts.push(part);
    }
    if (size <= maxInlineBytes) return { bytes: Buffer.concat(parts), mime: found.mime };
  } catch (error) {
    throw new ProtocolError(ProtocolErrorCode.InternalError, port.explain(error).message);
  }
  throw new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    `the artifact is larger than ${maxInlineBytes} bytes; fetch it with GET /v1/artifacts/${id}`,
  );
}
