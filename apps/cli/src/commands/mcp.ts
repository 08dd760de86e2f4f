import { serveMcpStdio } from "@berth/mcp";
import { givenAgent, givenSession, poolName, profileName, redisUrl } from "@berth/protocol";
import { type Arguments, command, jobOptions } from "../command.ts";
import { UsageError } from "../complaint.ts";
import { type Config, gatewayUrl } from "../config.ts";
import type { Context } from "../context.ts";
import { openDoor } from "../door/open-door.ts";
import { exitCodes } from "../exit-codes.ts";
import { mcpPort } from "../mcp-port.ts";
import { ownVersion } from "../own-version.ts";
import { placeOf } from "../run-job.ts";
import { printable } from "../terminal/printable.ts";
import { durationMs, oneOf, tenantName } from "../values.ts";

const options = {
  tenant: { type: "string", value: "TENANT", about: "whose sandbox the tools use" },
  ...jobOptions,
  url: { type: "string", value: "URL", about: "a gateway; instead of BERTH_URL. Its key is BERTH_KEY" },
  redis: { type: "string", value: "URL", about: "the fleet's Redis; instead of REDIS_URL" },
  wait: {
    type: "string",
    value: "TIME",
    about: "answer a long call after this time with its job's id (50s)",
  },
  "on-no-sandbox": {
    type: "string",
    value: "HOW",
    about: "calls whose sandbox no worker can start now: refuse, or wait (refuse)",
  },
} as const;

export const mcp = command({
  name: "mcp",
  summary: "give an agent a sandbox as MCP tools, on stdin and stdout",
  positionals: ["[TENANT]"],
  about:
    "A Model Context Protocol server for Claude Code, Cursor, VS Code, Codex and others; they start it. Its tools are bash, read,\n" +
    "write, edit, glob, grep, list, run_code, job and sandbox, and the custom tools that the tenant may use (docs/tools.md) as they\n" +
    "were when it started. The model cannot choose tenant, profile or pool. docs/mcp.md has the\n" +
    "lines to paste. It ends when its stdin does, and cancels the jobs whose calls are open then.",
  examples: [
    { line: "berth mcp --tenant acme", note: "through REDIS_URL, or BERTH_URL with BERTH_KEY" },
    {
      line: "berth mcp --tenant acme --scope session --session chat-42",
      note: "a sandbox for this conversation alone",
    },
    { line: "claude mcp add berth -- berth mcp --tenant acme", note: "for Claude Code" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const { wait } = values;
  const tenant = values.tenant ?? positionals[0];
  if (tenant === undefined) throw new UsageError("the tenant is missing", ["berth mcp --tenant acme"]);
  if (positionals[0] !== undefined && positionals[0] !== tenant)
    throw new UsageError(`two tenants are named: ${tenant} and ${positionals[0]}`);
  checkNames(values);
  const named = { tenant: tenantName(tenant), ...placeOf(values) };
  const answerWithinMs = wait === undefined ? undefined : durationMs("--wait", wait);
  const onNoSandbox = oneOf("--on-no-sandbox", values["on-no-sandbox"] ?? "refuse", ["refuse", "wait"]);
  const say = (error: unknown) => context.terminal.note(`berth: ${printable(String(error))}`);
  const signal = context.interrupts.signal();
  const door = await openDoor(chosen(context.config, values));
  try {
    // The tools offer a session argument only if sessions share a sandbox, so find the scope once at the start.
    const address = { ...named, scope: named.scope ?? (await door.scopeOf(named)) };
    const tools = await door.tools.usableBy(named);
    await serveMcpStdio(mcpPort(door, { tenant: named.tenant, onNoSandbox, onBug: say }), {
      address,
      tools,
      answerWithinMs,
      signal,
      version: await ownVersion(),
      onError: say,
    });
  } finally {
    await door.close();
  }
  return context.interrupts.interrupted ? context.interrupts.exitCode : exitCodes.ok;
}

const names = { session: givenSession, agent: givenAgent, profile: profileName, pool: poolName } as const;

/** Checked at the start: a model could not correct a wrong name. */
function checkNames(values: Readonly<Record<keyof typeof names, string | undefined>>): void {
  for (const [option, schema] of Object.entries(names)) {
    const [problem] = schema.optional().safeParse(values[option as keyof typeof names]).error?.issues ?? [];
    if (problem) throw new UsageError(`--${option}: ${problem.message}`);
  }
}

/** The command line takes precedence over the environment. */
function chosen(
  config: Config,
  { url, redis }: { url: string | undefined; redis: string | undefined },
): Config {
  if (url !== undefined && redis !== undefined)
    throw new UsageError("give either --url or --redis, not both");
  if (redis !== undefined) {
    checkAddress("--redis", redisUrl, redis);
    return { ...config, gatewayUrl: undefined, redisUrl: redis };
  }
  if (url === undefined) return config;
  checkAddress("--url", gatewayUrl, url);
  return { ...config, gatewayUrl: url };
}

function checkAddress(option: string, schema: typeof redisUrl | typeof gatewayUrl, address: string): void {
  const [problem] = schema.safeParse(address).error?.issues ?? [];
  if (problem) throw new UsageError(`${option}: ${problem.message}`);
}
