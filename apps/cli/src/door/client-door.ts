import { Artifacts, Berth, type EnqueuedJob, type JobView, shownState } from "@berth/client";
import { isFault, type ToolDefinitionInput, tenantId } from "@berth/protocol";
import { type Redis, withoutPassword } from "@berth/redis";
import type {
  ApprovalsDoor,
  BatchesDoor,
  DeadLettersDoor,
  Door,
  DoorJob,
  JobOrder,
  KeysDoor,
  KnownDoorJob,
  ProfilesDoor,
  Query,
  SchedulesDoor,
  SecretsDoor,
  SnapshotsDoor,
  TenantsDoor,
  ToolsDoor,
  UnfinishedJob,
} from "../door.ts";
import { clientBatches } from "./client-batches.ts";
import { clientKeys } from "./client-keys.ts";
import { actor, clientProfiles } from "./client-profiles.ts";
import { clientTenants } from "./client-tenants.ts";
import { openRedis } from "./open-redis.ts";

export interface ClientDoorOptions {
  readonly url: string;
  readonly artifactsDirectory: string | undefined;
  readonly accept: "primary" | "replicated";
  readonly replicas: number;
  /** Absent: jobs with secrets are refused. */
  readonly secretsKey: string | undefined;
}

/** Connects straight to the fleet's Redis. */
export class ClientDoor implements Door {
  readonly address: string;
  readonly batches: BatchesDoor;
  readonly tenants: TenantsDoor;
  readonly profiles: ProfilesDoor;
  readonly secrets: SecretsDoor;
  readonly snapshots: SnapshotsDoor;
  readonly schedules: SchedulesDoor;
  readonly deadLetters: DeadLettersDoor;
  readonly approvals: ApprovalsDoor;
  readonly keys: KeysDoor;
  readonly tools: ToolsDoor;
  readonly #redis: Redis;
  readonly #berth: Berth;
  readonly #artifacts: Artifacts;

  static async open(options: ClientDoorOptions): Promise<ClientDoor> {
    return new ClientDoor(await openRedis(options.url), options);
  }

  private constructor(redis: Redis, { url, artifactsDirectory, ...rest }: ClientDoorOptions) {
    const berth = new Berth({ redis: url, ...rest });
    this.address = withoutPassword(url);
    this.#redis = redis;
    this.#berth = berth;
    this.#artifacts = new Artifacts(redis, { directory: artifactsDirectory });
    this.tenants = clientTenants(berth);
    this.batches = clientBatches(berth);
    this.profiles = clientProfiles(berth);
    this.secrets = berth.secrets;
    this.snapshots = {
      list: (tenant) => berth.tenant(tenant).snapshots(),
      remove: (tenant, name) => berth.tenant(tenant).removeSnapshot(name),
    };
    this.schedules = berth.schedules;
    this.keys = clientKeys(berth);
    this.tools = {
      usableBy: (user) => berth.tools.usableBy(user),
      list: () => berth.tools.list(),
      get: (name) => berth.tools.get(name),
      set: (name, definition, ifVersion) =>
        berth.tools.set(name, definition as ToolDefinitionInput, { by: actor(), ifVersion }),
      remove: (name) => berth.tools.remove(name),
    };
    this.approvals = {
      list: (tenant) => berth.approvals.list(tenant === undefined ? {} : { tenant }),
      get: (jobId) => berth.approvals.get(jobId),
      approve: (seen) => berth.approvals.approve(seen, { by: actor() }),
      refuse: (seen, reason) => berth.approvals.refuse(seen, { by: actor(), reason }),
    };
    this.deadLetters = {
      list: async ({ limit, after }) =>
        (await berth.deadLetters.list({ limit, ...(after === undefined ? {} : { after }) })).map(
          ({ job: _, ...letter }) => letter,
        ),
      redrive: (jobId) => berth.deadLetters.redrive(jobId).catch(undefinedWhenMissing),
      remove: (jobId) => berth.deadLetters.remove(jobId),
    };
  }

  async submit(order: JobOrder): Promise<DoorJob> {
    return doorJob(await this.#berth.submit(order).enqueued());
  }

  async job(id: string): Promise<KnownDoorJob | undefined> {
    const job = await this.#berth.job(id);
    return job && { ...doorJob(job), sandbox: job.key };
  }

  why(id: string) {
    return this.#berth.why(id);
  }

  async unfinished(query: Query) {
    return (await this.#berth.jobs.list(query)).flatMap(unfinishedJob);
  }

  workers() {
    return this.#berth.workers();
  }

  scopeOf({ tenant, agent }: { readonly tenant: string; readonly agent?: string | undefined }) {
    return this.#berth.scopeOf(tenant, agent);
  }

  sandboxes({ tenant, limit }: Query) {
    return this.#berth.sandboxes({ limit, ...(tenant === undefined ? {} : { tenant }) });
  }

  scale() {
    return this.#berth.scale();
  }

  drain(worker: string) {
    return this.#berth.drain(worker);
  }

  async artifact(id: string, { tenant }: { readonly tenant?: string | undefined } = {}) {
    if (tenant !== undefined) {
      const meta = await this.#artifacts.meta(id);
      if (meta?.tenant !== tenantId.parse(tenant)) return undefined;
    }
    return this.#artifacts.stream(id);
  }

  async close(): Promise<void> {
    await this.#berth.close();
    this.#redis.disconnect();
  }
}

function doorJob(job: EnqueuedJob): DoorJob {
  return {
    id: job.id,
    events: (after, signal) => job.events(after, signal),
    result: () => job.result,
    status: async () => shownState(await job.status()),
    cancel: () => job.cancel(),
  };
}

function unfinishedJob({ result: _, ...job }: JobView): UnfinishedJob[] {
  const state = shownState(job.state);
  return state === "finished" ? [] : [{ ...job, state }];
}

function undefinedWhenMissing(error: unknown): undefined {
  if (isFault(error, "not-redrivable") && error.context.reason === "not-found") return;
  throw error;
}
