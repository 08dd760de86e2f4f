import { createHash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Arguments, command } from "../command.ts";
import { Complaint } from "../complaint.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { spanText } from "../terminal/quantities.ts";
import { wholeNumber } from "../values.ts";

const options = {
  workers: { type: "string", short: "w", value: "N", about: "how many (2)" },
  port: { type: "string", short: "p", value: "PORT", about: "of the gateway (8080); 0 takes a free one" },
  dir: {
    type: "string",
    value: "DIR",
    about: "where it keeps Redis' data, workspaces, artifacts, logs (.berth/dev)",
  },
} as const;

export const dev = command({
  name: "dev",
  summary: "a whole fleet on this machine, until Ctrl-C",
  positionals: [],
  about:
    "Redis, workers and a gateway with its dashboard. Tenants' files and jobs are kept for the next start.",
  examples: [
    {
      line: "berth dev",
      note: "then, in another terminal: BERTH_URL=http://127.0.0.1:8080 berth exec acme -- ls",
    },
    { line: "berth dev --workers 4 --port 9000", note: "" },
    { line: "REDIS_URL=redis://127.0.0.1 berth dev", note: "with a Redis of yours" },
    { line: "berth dev --port 0 --json", note: "its addresses as one line, for a program" },
  ],
  options,
  run,
});

async function run({ values }: Arguments<typeof options>, context: Context): Promise<number> {
  const { terminal, config, interrupts } = context;
  const { LocalFleet } = await import("../local/local-fleet.ts");
  const directory = resolve(context.directory, values.dir ?? ".berth/dev");
  await mkdir(directory, { recursive: true });
  if (config.redisUrl === undefined) await refuseSecond(directory);
  const interrupted = interrupts.signal();
  const fleet = new LocalFleet({
    workers: values.workers === undefined ? 2 : wholeNumber("--workers", values.workers),
    redisUrl: config.redisUrl,
    directory,
    fleet: `dev-${createHash("sha256").update(directory).digest("hex").slice(0, 8)}`,
    workerPrefix: "dev",
    port: values.port === undefined ? 8080 : wholeNumber("--port", values.port, 0),
    config,
    onEnd: (name, how) =>
      terminal.note(`berth: ${name} ended (${how}); its log is ${join(directory, `${name}.log`)}`),
  });
  const began = performance.now();
  try {
    await interrupts.race(fleet.start());
    const { addresses } = await import("../local/addresses.ts");
    const { gatewayUrl: gateway, redisUrl: redis } = fleet;
    await terminal.answer(
      { gateway, redis, directory },
      () => `up in ${spanText(performance.now() - began)}; Ctrl-C ends it\n${addresses(fleet)}`,
    );
    if (!interrupted.aborted)
      await new Promise((end) => interrupted.addEventListener("abort", end, { once: true }));
    if (!terminal.json)
      terminal.note("berth: stopping; running jobs get half a minute, Ctrl-C again does not wait");
  } finally {
    await fleet.stop();
  }
  return exitCodes.ok;
}

/** Refuses a second fleet in one directory: its Redis would take over the first one's socket. */
async function refuseSecond(directory: string): Promise<void> {
  const { openRedis } = await import("../door/open-redis.ts");
  const redis = await openRedis(`unix://${join(directory, "redis.sock")}`).catch(() => undefined);
  if (!redis) return;
  redis.disconnect();
  throw new Complaint(`a fleet is up already in ${directory}`, {
    advice: ["use that one, or give another --dir and --port"],
  });
}
