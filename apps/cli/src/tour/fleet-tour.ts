import { createHash } from "node:crypto";
import type { Berth } from "@berth/client";

export interface FleetTour {
  readonly berth: Berth;
  readonly gatewayUrl: string;
  readonly say: (text: string) => void;
  /** Progress on one line. */
  readonly draw: (done: number, total: number) => void;
}

const tenants = ["acme", "globex", "initech"];
const jobsEach = 20;

/** A tour of a running fleet. Every step checks its result; returns the number of failed checks. */
export async function walkFleet(tour: FleetTour): Promise<number> {
  const steps = [runBatch, runLive, runArtifact, runTimeout, runHttp];
  let wrong = 0;
  for (const step of steps) wrong += await step(tour);
  return wrong;
}

async function runBatch({ berth, say, draw }: FleetTour): Promise<number> {
  say(`\n— a batch: ${tenants.length * jobsEach} jobs for ${tenants.length} tenants`);
  const orders = Array.from({ length: tenants.length * jobsEach }, (_, index) => ({
    tenant: tenants[index % tenants.length] ?? "acme",
    session: `s${index % 7}`,
    request: { kind: "exec" as const, command: `echo $((${index} * ${index})) | tee -a squares` },
  }));
  const began = performance.now();
  const batch = berth.batch(orders, { id: `tour-${process.pid}-${Date.now()}` });
  let wrong = 0;
  for await (const { index, result } of batch.results()) {
    if (result.value.stdout !== `${index * index}\n`) wrong++;
    draw(batch.progress().finished, orders.length);
  }
  const seconds = (performance.now() - began) / 1_000;
  say(
    `  ${batch.progress().finished} done, ${wrong} wrong, ${(orders.length / seconds).toFixed(0)} a second, three cold starts included`,
  );
  for (const tenant of tenants) {
    const value = await berth.tenant(tenant).exec("sort -u squares | wc -l");
    say(`  ${tenant} has its ${value.stdout?.trim()} lines in a workspace of its own`);
    if (value.stdout?.trim() !== String(jobsEach)) wrong++;
  }
  return wrong;
}

async function runLive({ berth, say }: FleetTour): Promise<number> {
  say("\n— one job, followed as it runs");
  const kinds: string[] = [];
  const job = berth.tenant("acme").exec("for i in 1 2 3; do echo step $i; sleep 0.2; done");
  for await (const event of job.events()) {
    kinds.push(event.type);
    if (event.type === "started") say(`  started on ${event.worker}, epoch ${event.epoch}`);
    else if (event.type === "finished") say(`  finished: ${JSON.stringify(event.result.outcome)}`);
    else if ("bytes" in event) say(`  ${event.bytes.toString().trimEnd()}`);
  }
  return kinds.at(0) === "started" && kinds.at(-1) === "finished" ? 0 : 1;
}

async function runArtifact({ berth, gatewayUrl, say }: FleetTour): Promise<number> {
  say("\n— a file that a job leaves, fetched over HTTP");
  const made = await berth.tenant("globex").exec("seq 1000 > numbers.txt", { artifacts: ["numbers.txt"] });
  const [artifact] = made.artifacts ?? [];
  if (!artifact) {
    say("  nothing was kept");
    return 1;
  }
  const response = await fetch(`${gatewayUrl}/v1/artifacts/${artifact.id}`);
  const bytes = Buffer.from(await response.arrayBuffer());
  const same = createHash("sha256").update(bytes).digest("hex") === artifact.sha256;
  say(
    `  ${artifact.path}: ${bytes.length} bytes of ${artifact.mime}, ${same ? "as the job left it" : "not what the job left"}`,
  );
  return same ? 0 : 1;
}

async function runTimeout({ berth, say }: FleetTour): Promise<number> {
  say("\n— a command that does not end, and ignores being asked to");
  const stubborn = "trap '' TERM; (setsid sleep 300 &); while :; do sleep 1; done";
  const { outcome } = await berth.tenant("initech").exec(stubborn, { timeoutMs: 800, graceMs: 200 });
  const left = await berth.tenant("initech").exec("ps -e -o args= | grep -c '[s]leep 300'");
  say(`  ${JSON.stringify(outcome)}; processes it left: ${left.stdout?.trim()}`);
  return outcome.kind === "timed-out" && left.stdout?.trim() === "0" ? 0 : 1;
}

async function runHttp({ gatewayUrl, say }: FleetTour): Promise<number> {
  say("\n— the same fleet over HTTP");
  const response = await fetch(`${gatewayUrl}/v1/sandbox/bash`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ tenant_id: "acme", command: "echo $((6 * 7))" }),
  });
  const answer = (await response.json()) as { stdout?: string; exit_code?: number };
  say(`  POST /v1/sandbox/bash: ${JSON.stringify({ exit_code: answer.exit_code, stdout: answer.stdout })}`);
  return answer.stdout === "42\n" ? 0 : 1;
}
