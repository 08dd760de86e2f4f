import { type ArtifactRef, execLimits, type JobResult, type Outcome } from "@berth/protocol";
import { LeaseOver } from "../../src/lease-over.ts";
import type { OpenSandbox, SandboxPort } from "../../src/tenancy-ports.ts";
import type { Container, Host } from "./containers.ts";
import type { PlantedBug } from "./planted-bug.ts";
import type { Random } from "./random.ts";
import type { Rules } from "./rules.ts";
import type { Entry } from "./sim-job.ts";
import type { SimProcess } from "./sim-process.ts";
import type { VirtualTime } from "./virtual-time.ts";
import type { Weather } from "./weather.ts";

export interface SandboxModelOptions {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly weather: Weather;
  readonly rules: Rules;
  readonly process: SimProcess;
  readonly worker: string;
  readonly host: Host;
  readonly key: string;
  readonly epoch: number;
  readonly jobOf: (jobId: string) => Entry;
  readonly bug?: PlantedBug | undefined;
}

type RunOptions = Parameters<OpenSandbox["run"]>[1];

const keptBytes = 4_096;

/** A tenancy's sandbox: a container of its host, opened when the first job needs it. */
export function sandboxModel(options: SandboxModelOptions): SandboxPort {
  const { process, host, key, epoch, weather, random, time, rules } = options;
  let container: Container | undefined;
  let users = 0;
  return {
    isOpen: () => container !== undefined,
    open: async (_job, { signal, leaseLeftMs }) => {
      const open = async () => {
        const ready = container ? 1 : random.between(5, 600);
        await process.clock.sleep(ready, signal);
        const fault = container ? undefined : weather.engineFault(time.nowMs);
        if (fault) throw fault;
        container = host.open(key, { process, epoch, leftMs: leaseLeftMs });
        rules.opened(key, epoch);
        return container;
      };
      const opened = options.bug === "begin-before-open" ? undefined : await open();
      users++;
      return {
        limits: execLimits.parse({ keptBytes }),
        run: async (_request, context) => runJob(options, opened ?? (await open()), context),
        workspace: async () => {
          throw new TypeError("no job of the simulation is about a workspace");
        },
        stop: async (signal) => {
          await process.clock.sleep(random.between(5, 50), signal);
          host.remove(key, epoch);
          container = undefined;
        },
        destroy: async (signal) => {
          await process.clock.sleep(random.between(5, 50), signal);
          host.remove(key, epoch);
          container = undefined;
        },
        done: () => {
          users--;
        },
      };
    },
    close: async (how) => {
      if (users !== 0)
        rules.broken("a sandbox is closed only when no job uses it", key, [key, options.worker]);
      await process.clock.sleep(random.between(5, 100));
      if (how === "remove") host.remove(key, epoch);
      else if (how === "park") host.park(key, epoch);
    },
  };
}

async function runJob(
  options: SandboxModelOptions,
  container: Container,
  context: RunOptions,
): Promise<JobResult> {
  const entry = options.jobOf(context.conversation.jobId);
  options.rules.handOvers.handed({ jobId: entry.job.id, attempt: entry.attempt, epoch: options.epoch });
  const { job } = entry;
  const began = options.time.nowMs;
  let outcome: Outcome = { kind: "done" };
  for (const index of job.commands.keys()) {
    context.check();
    outcome = await runCommand(options, container, context, { ...entry, index });
    if (outcome.kind !== "exited" || outcome.code !== 0) break;
  }
  if (job.breaks) throw new TypeError("an unforeseen failure");
  if (job.artifact && outcome.kind === "exited") await context.onArtifact(artifactOf(entry));
  return { outcome, value: {}, timing: { wallMs: options.time.nowMs - began, cpuMs: 0 } };
}

function runCommand(
  { worker, epoch, process }: SandboxModelOptions,
  container: Container,
  { signal, onOutput }: RunOptions,
  { job, attempt, index }: Entry & { readonly index: number },
): Promise<Outcome> {
  const plan = job.commands[index];
  if (!plan) throw new RangeError(`no command ${index} in ${job.id}`);
  if (signal.aborted) return Promise.resolve(cancelled(signal));
  return new Promise((resolve, reject) => {
    const kill = container.exec({ job, attempt, index, epoch, worker, process }, plan, {
      onChunk: async (text) => onOutput({ stream: "stdout", bytes: Buffer.from(text) }),
      onEnd: (how) => {
        signal.removeEventListener("abort", kill);
        if (how === "lease-over") reject(new LeaseOver(index > 0));
        else if (how === "exited") resolve({ kind: "exited", code: plan.code });
        else if (signal.aborted) resolve(cancelled(signal));
        else resolve({ kind: "lost", message: "its container went away" });
      },
    });
    signal.addEventListener("abort", kill, { once: true });
  });
}

function cancelled({ reason }: AbortSignal): Outcome {
  return { kind: "cancelled", reason: typeof reason === "string" ? reason : "by its caller" };
}

function artifactOf({ job: { id } }: Entry): ArtifactRef {
  const sha256 = "0".repeat(64);
  return { id: id.padEnd(32, "0"), path: "a", size: 1, sha256, mime: "text/plain", expiresAtMs: 0 };
}
