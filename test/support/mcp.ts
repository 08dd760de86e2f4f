import { fileURLToPath } from "node:url";
import { type CallToolResult, Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const program = fileURLToPath(new URL("../../apps/cli/src/main.ts", import.meta.url));

/** `legacy` opens with the handshake of 2025-11-25 and before; `modern` speaks 2026-07-28. */
export type Era = "legacy" | "modern";

const modes = { legacy: { mode: "legacy" }, modern: { mode: { pin: "2026-07-28" } } } as const;

export interface Asked {
  readonly text: string;
  readonly isError: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect of it
  readonly structured: any;
  readonly content: CallToolResult["content"];
}

/** The official client, connected to one of Berth's two transports. */
export class McpSession implements AsyncDisposable {
  readonly client: Client;
  readonly transport: StdioClientTransport | StreamableHTTPClientTransport;

  private constructor(client: Client, transport: McpSession["transport"]) {
    this.client = client;
    this.transport = transport;
  }

  static async stdio(
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    era: Era = "legacy",
  ): Promise<McpSession> {
    return McpSession.#connect(
      new StdioClientTransport({
        command: process.execPath,
        args: ["--conditions=@berth/source", program, "mcp", ...args],
        env: { PATH: process.env.PATH ?? "", ...env },
        stderr: "pipe",
      }),
      era,
    );
  }

  static async http(
    url: string,
    headers: Readonly<Record<string, string>>,
    era: Era = "legacy",
  ): Promise<McpSession> {
    const transport = new StreamableHTTPClientTransport(new URL("/mcp", url), {
      requestInit: { headers: { ...headers } },
    });
    return McpSession.#connect(transport, era);
  }

  static async #connect(transport: McpSession["transport"], era: Era): Promise<McpSession> {
    const client = new Client({ name: "test", version: "1" }, { versionNegotiation: modes[era] });
    await client.connect(transport);
    return new McpSession(client, transport);
  }

  async call(
    name: string,
    args: Record<string, unknown> = {},
    options: Parameters<Client["callTool"]>[1] = {},
  ): Promise<Asked> {
    const result = await this.client.callTool({ name, arguments: args }, options);
    const { content, structuredContent: structured, isError = false } = result as CallToolResult;
    const [first] = content;
    return { text: first?.type === "text" ? first.text : "", isError, structured, content };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close();
  }
}
