/**
 * A door of your own: POST a command to /TENANT, and get the text that an agent would read.
 *
 *   REDIS_URL=redis://127.0.0.1:6379 PORT=8090 node --conditions=@berth/source examples/door.ts
 *   curl -d 'echo hello' http://127.0.0.1:8090/acme
 *
 * A door validates, calls the client, and formats the answer. The fleet does everything else: order, limits, takeover. This door
 * has no keys, so it listens on loopback only.
 */
import { createServer, type IncomingMessage } from "node:http";
import { Berth, isFault } from "@berth/client";
import { givenTenant, isSuccess } from "@berth/protocol";

const mostBytes = 64 * 1024;
const berth = new Berth({ redis: process.env.REDIS_URL ?? "redis://127.0.0.1:6379" });

class BadRequest extends Error {}

async function commandOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > mostBytes) throw new BadRequest(`the command is longer than ${mostBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** The tenant's name in a path, percent-encoded: `/bob%40example.com`. */
function nameIn(path: string): string | undefined {
  try {
    return decodeURIComponent(path.slice(1));
  } catch {
    return undefined;
  }
}

async function answer(request: IncomingMessage): Promise<{ status: number; text: string }> {
  const tenant = givenTenant.safeParse(nameIn(request.url ?? ""));
  if (!tenant.success) throw new BadRequest("the path is not a tenant's name");
  const run = await berth.tenant(tenant.data).exec(await commandOf(request), { timeoutMs: 10_000 });
  return { status: isSuccess(run.outcome) ? 200 : 422, text: run.text };
}

/** A client's mistake is 400, a fault that passes is 503, any other is 500. */
function problem(error: unknown): { status: number; text: string } {
  if (error instanceof BadRequest || isFault(error, "invalid-job") || isFault(error, "unknown-tenant"))
    return { status: 400, text: `${error.message}\n` };
  if (isFault(error)) return { status: error.retry ? 503 : 500, text: `${error.code}\n` };
  return { status: 500, text: "internal error\n" };
}

const server = createServer(async (request, response) => {
  const { status, text } = await answer(request).catch(problem);
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(text);
});
server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
  const address = server.address();
  if (address !== null && typeof address === "object") console.log(`http://127.0.0.1:${address.port}`);
});
process.once("SIGTERM", () => server.close(() => void berth.close()));
