import { isRepeatable, type JobRequestInput, job as jobSchema } from "@berth/protocol";
import { Connection } from "./connection.ts";
import type { Random } from "./random.ts";
import type { CommandPlan, SimJob } from "./sim-job.ts";
import { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/** Makes jobs at moments of its choosing, and wants some of them cancelled. */
export class Producer {
  readonly #world: World;
  readonly #connection: Connection;

  constructor(world: World) {
    this.#world = world;
    const { time, random, weather, trace, settings } = world;
    const process = new SimProcess(time, random);
    const { commandTimeoutMs: timeoutMs } = settings;
    this.#connection = new Connection({ name: "client", time, process, weather, trace, timeoutMs });
  }

  start(): void {
    const { random, time, settings } = this.#world;
    for (let made = 0; made < settings.jobs; made++) {
      const atMs = random.chance(0.3) ? random.between(0, 20) : random.between(0, settings.stormMs);
      time.after(atMs, () => void this.#submit(this.#job(made)));
    }
  }

  /** Retried until it is known to be in: the same id is one job. */
  async #submit(job: SimJob): Promise<void> {
    const { redis } = this.#world;
    for (;;) {
      try {
        const held = await this.#connection.bull(`add ${job.id}`, () => redis.add({ job, attempt: 1 }));
        // A producer that dies here leaves the offering to the sweep.
        if (!held && this.#world.random.chance(0.9))
          await this.#connection.bull("offer", () => redis.offer(job.key));
        return this.#maybeCancel(job);
      } catch {
        // The answer did not come; nobody knows.
      }
    }
  }

  #maybeCancel(job: SimJob): void {
    const { random, time, settings } = this.#world;
    if (!random.chance(0.12)) return;
    time.after(random.between(0, settings.leaseMs), () => void this.#cancel(job));
  }

  async #cancel({ id, key }: SimJob): Promise<void> {
    const { redis, workers, trace, random } = this.#world;
    trace.note("client", "cancels", id);
    try {
      await this.#connection.bull(`cancel ${id}`, () => redis.events.cancel(id));
    } catch {
      return;
    }
    // Messages get lost while connections are away.
    for (const { current } of workers) if (random.chance(0.9)) current.hearCancel(key, id);
  }

  #job(number: number): SimJob {
    const { random, settings, time } = this.#world;
    const id = `job-${number}`;
    const key = random.pick(settings.keys);
    const session = `s${random.between(1, settings.sessions)}`;
    const kind = random.pick(kinds);
    const request = requests[kind];
    const parsed = jobSchema.safeParse({
      version: 1,
      id,
      tenant: key,
      session,
      request,
      idempotent: random.chance(0.2),
      ...(random.chance(0.2) ? { retry: { attempts: random.between(2, 3), backoffMs: 300, jitter: 0 } } : {}),
      ...(random.chance(0.1) ? { deadlineAtMs: time.nowMs + random.between(0, settings.leaseMs) } : {}),
    });
    const base = { id, key, session, artifact: random.chance(0.15), breaks: random.chance(0.02) };
    const commands = Array.from({ length: kind === "steps" ? 2 : 1 }, () => this.#command(id, random));
    const staged = random.chance(0.15) ? ({ staged: random.chance(0.1) ? "gone" : "there" } as const) : {};
    if (!parsed.success) return { ...base, ...staged, data: { request }, commands, repeatable: false };
    const job = parsed.data;
    const repeatable = isRepeatable(job.request, job.idempotent);
    return { ...base, ...staged, data: job, job, commands: kind === "destroy" ? [] : commands, repeatable };
  }

  #command(id: string, random: Random): CommandPlan {
    const { leaseMs } = this.#world.settings;
    const runMs = random.chance(0.15) ? random.between(0, leaseMs * 2.5) : random.between(1, 300);
    const chunks = Array.from({ length: random.pick([0, 0, 1, 3, 8]) }, (_, index) => `${id}:${index} `);
    return { runMs, code: random.chance(0.2) ? 1 : 0, chunks };
  }
}

const kinds = ["exec", "exec", "exec", "exec", "read", "write", "steps", "destroy", "nonsense"] as const;

const command = { kind: "exec", command: "effect" } as const;
const requests: Record<(typeof kinds)[number], JobRequestInput | { kind: "nonsense" }> = {
  exec: command,
  read: { kind: "read", path: "a" },
  write: { kind: "write", path: "a", content: "b" },
  steps: { kind: "steps", steps: [command, command] },
  destroy: { kind: "destroy" },
  nonsense: { kind: "nonsense" },
};
