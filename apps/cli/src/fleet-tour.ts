import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Berth } from "@berth/client";
import type { Config } from "./config.ts";
import { LocalFleet } from "./local-fleet.ts";

const tenants = ["acme", "globex", "initech"];
const jobsEach = 20;
const barWidth = 30;

/** A fleet of two workers and a batch for three tenants. Returns how many things went otherwise than promised. */
export async function runFleetTour(config: Config, options: { readonly serve: boolean }): Promise<number> {
  await mkdir(".berth", { recursive: true });
  const directory = await mkdtemp(join(resolve(".berth"), "fleet-"));
  const fleet = new LocalFleet({
    workers: 2,
    redisUrl: config.REDIS_URL,
    directory,
    fleet: `tour-${process.pid}`,
    environment: workerEnvironment(config, directory),
  });
  let berth: Berth | undefined;
  const began = performance.now();
  try {
    say("\n— a fleet: Redis and two workers");
    await fleet.start();
    say(`  up in ${Math.round(performance.now() - began)} ms`);
    berth = new Berth({ redis: fleet.redisUrl });
    const failures = (await runBatch(berth)) + (await runLive(berth));
    if (options.serve) await serveUntilSignal(fleet.redisUrl);
    return failures;
  } finally {
    await berth?.close();
    await fleet.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

async function runBatch(berth: Berth): Promise<number> {
  say(`\n— a batch: ${tenants.length * jobsEach} jobs for ${tenants.length} tenants`);
  const orders = Array.from({ length: tenants.length * jobsEach }, (_, index) => ({
    tenant: tenants[index % tenants.length] ?? "acme",
    session: `s${index % 7}`,
    request: { kind: "exec" as const, command: `echo $((${index} * ${index})) | tee -a squares` },
  }));
  const began = performance.now();
  const batch = berth.batch(orders, { id: `tour-${process.pid}` });
  let wrong = 0;
  for await (const { index, result } of batch.results()) {
    if (result.value.stdout !== `${index * index}\n`) wrong++;
    showBar(batch.progress().finished / orders.length);
  }
  const seconds = (performance.now() - began) / 1000;
  say(
    `\n  ${batch.progress().finished} done, ${wrong} wrong, ${(orders.length / seconds).toFixed(0)} a second, cold start included`,
  );
  for (const tenant of tenants) {
    const { value } = await berth.tenant(tenant).exec("wc -l < squares");
    say(`  ${tenant} has ${value.stdout?.trim()} lines in its own workspace`);
    if (value.stdout?.trim() !== String(jobsEach)) wrong++;
  }
  return wrong;
}

async function runLive(berth: Berth): Promise<number> {
  say("\n— one job, followed as it runs");
  const kinds: string[] = [];
  for await (const event of berth
    .tenant("acme")
    .exec("for i in 1 2 3; do echo step $i; sleep 0.2; done")
    .events()) {
    kinds.push(event.type);
    if (event.type === "started") say(`  started on ${event.worker}, epoch ${event.epoch}`);
    else if (event.type === "finished") say(`  finished: ${JSON.stringify(event.result.outcome)}`);
    else say(`  ${event.bytes.toString().trimEnd()}`);
  }
  return kinds.at(0) === "started" && kinds.at(-1) === "finished" ? 0 : 1;
}

async function serveUntilSignal(redisUrl: string): Promise<void> {
  say(`\nServing. REDIS_URL=${redisUrl}; Ctrl-C ends it.`);
  await new Promise((end) => {
    process.once("SIGINT", end);
    process.once("SIGTERM", end);
  });
}

function workerEnvironment(config: Config, directory: string): Record<string, string> {
  return {
    PATH: config.PATH,
    BERTH_IMAGE: config.BERTH_IMAGE,
    BERTH_WORKSPACES: join(directory, "workspaces"),
    ...(config.DOCKER_HOST === undefined ? {} : { DOCKER_HOST: config.DOCKER_HOST }),
    ...(config.BERTH_RUNTIME === undefined ? {} : { BERTH_RUNTIME: config.BERTH_RUNTIME }),
  };
}

/** On a terminal a line that moves; elsewhere only its end. */
function showBar(share: number): void {
  const full = Math.round(share * barWidth);
  const bar = `  [${"█".repeat(full)}${" ".repeat(barWidth - full)}] ${Math.round(share * 100)} %`;
  if (process.stdout.isTTY) process.stdout.write(`\r${bar}`);
  else if (share === 1) process.stdout.write(bar);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
