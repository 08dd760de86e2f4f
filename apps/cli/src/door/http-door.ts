import { randomBytes } from "node:crypto";
import type { JobResult, Scope } from "@berth/protocol";
import { Complaint, resubmitAdvice, UsageError } from "../complaint.ts";
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
  SandboxView,
  Scale,
  SchedulesDoor,
  SecretsDoor,
  ShownState,
  SnapshotsDoor,
  TenantsDoor,
  ToolsDoor,
  UnfinishedJob,
  Why,
  WorkerRecord,
} from "../door.ts";
import {
  httpApprovals,
  httpDeadLetters,
  httpKeys,
  httpProfiles,
  httpSchedules,
  httpSecrets,
  httpSnapshots,
  httpTenants,
  httpTools,
} from "./http-admin.ts";
import { httpArtifact } from "./http-artifact.ts";
import { httpBatches } from "./http-batches.ts";
import { HttpCalls, path } from "./http-call.ts";
import { httpEvents } from "./http-events.ts";

/** Long-poll interval, below common proxy timeouts. */
const waitSeconds = 25;
/** Maximum page size of the gateway's lists. */
const mostListed = 1_000;

interface JobView {
  readonly sandbox: string;
  readonly state: ShownState;
  readonly result?: JobResult;
}

/** The fleet through a gateway. */
export class HttpDoor implements Door {
  readonly batches: BatchesDoor;
  readonly tenants: TenantsDoor;
  readonly approvals: ApprovalsDoor;
  readonly profiles: ProfilesDoor;
  readonly secrets: SecretsDoor;
  readonly snapshots: SnapshotsDoor;
  readonly schedules: SchedulesDoor;
  readonly deadLetters: DeadLettersDoor;
  readonly keys: KeysDoor;
  readonly tools: ToolsDoor;
  readonly #calls: HttpCalls;

  /** Fails at once if no gateway answers. Does not check that the gateway is ready. */
  static async open({
    url,
    key,
    outageMs,
  }: {
    readonly url: string;
    readonly key: string | undefined;
    /** A call fails when the gateway is away for longer; default 10 s. */
    readonly outageMs?: number;
  }): Promise<HttpDoor> {
    const calls = new HttpCalls(url, key);
    if (outageMs !== undefined) calls.outageMs = outageMs;
    await calls.json("GET", "/healthz", { repeatable: false });
    return new HttpDoor(calls);
  }

  private constructor(calls: HttpCalls) {
    this.#calls = calls;
    this.batches = httpBatches(calls);
    this.tenants = httpTenants(calls);
    this.approvals = httpApprovals(calls);
    this.profiles = httpProfiles(calls);
    this.secrets = httpSecrets(calls);
    this.snapshots = httpSnapshots(calls);
    this.schedules = httpSchedules(calls);
    this.deadLetters = httpDeadLetters(calls);
    this.keys = httpKeys(calls);
    this.tools = httpTools(calls);
  }

  get address(): string {
    return this.#calls.address;
  }

  /** Sends its own job id, so that a retry after a broken connection runs nothing twice. */
  async submit(order: JobOrder): Promise<DoorJob> {
    const id = order.id ?? `cli_${randomBytes(12).toString("base64url")}`;
    try {
      await this.#calls.json("POST", "/v1/jobs", { body: { ...order, id }, repeatable: true });
    } catch (error) {
      throw error instanceof Complaint && error.code === "gateway-unreachable" ? withJobId(error, id) : error;
    }
    return this.#job(id);
  }

  async job(id: string): Promise<KnownDoorJob | undefined> {
    const view = await this.#calls.find<JobView>("GET", path`/v1/jobs/${id}`);
    return view && { ...this.#job(id), sandbox: view.sandbox };
  }

  async why(id: string): Promise<Why> {
    const why = await this.#calls.find<Why>("GET", path`/v1/jobs/${id}/why`);
    const reason = "no job of that id was accepted, or it ended more than a day ago";
    return why ?? { jobId: id, state: "unknown", reasons: [reason], codes: ["unknown"] };
  }

  async unfinished({ tenant, limit }: Query): Promise<UnfinishedJob[]> {
    if (limit > mostListed)
      throw new UsageError(`--limit: a gateway lists at most ${mostListed} jobs at once, not ${limit}`, [
        "name a tenant, or set REDIS_URL instead of BERTH_URL",
      ]);
    const query = { tenant, limit };
    const { jobs } = await this.#calls.json<{ jobs: UnfinishedJob[] }>("GET", "/v1/jobs", { query });
    return jobs;
  }

  async workers(): Promise<WorkerRecord[]> {
    return (await this.#calls.json<{ workers: WorkerRecord[] }>("GET", "/v1/fleet/workers")).workers;
  }

  async scopeOf({ tenant, agent }: { readonly tenant: string; readonly agent?: string | undefined }) {
    const query = agent === undefined ? {} : { agent };
    const where = path`/v1/tenants/${tenant}/scope`;
    return (await this.#calls.json<{ scope: Scope }>("GET", where, { query })).scope;
  }

  async sandboxes({ tenant, limit }: Query): Promise<readonly SandboxView[]> {
    if (tenant !== undefined) return (await this.tenants.holdings(tenant)).sandboxes.slice(0, limit);
    const query = { limit };
    return (await this.#calls.json<{ sandboxes: SandboxView[] }>("GET", "/v1/fleet/sandboxes", { query }))
      .sandboxes;
  }

  scale(): Promise<Scale> {
    return this.#calls.json("GET", "/v1/fleet/scale");
  }

  drain(worker: string): Promise<void> {
    return this.#calls.json("POST", path`/v1/fleet/workers/${worker}/drain`);
  }

  async artifact(
    id: string,
    { tenant }: { readonly tenant?: string | undefined } = {},
  ): Promise<AsyncIterable<Uint8Array> | undefined> {
    try {
      return await httpArtifact(this.#calls, { id, tenant });
    } catch (error) {
      if (error instanceof Complaint && error.code === "not-found") return undefined;
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#calls.close();
  }

  #job(id: string): DoorJob {
    const look = (wait: number) =>
      this.#calls.json<JobView>("GET", path`/v1/jobs/${id}`, { query: { wait } });
    return {
      id,
      events: (after, signal) => httpEvents(this.#calls, id, after, signal),
      result: async () => {
        for (;;) {
          const { result } = await look(waitSeconds);
          if (result) return result;
        }
      },
      status: async () => (await look(0)).state,
      cancel: () => this.#calls.json("DELETE", path`/v1/jobs/${id}`),
    };
  }
}

/** The gateway may have accepted the job before the connection broke. */
function withJobId(error: Complaint, id: string): Complaint {
  const { exitCode, code, advice, cause } = error;
  return new Complaint(`${error.message}; the job ${id} may have been accepted`, {
    ...{ exitCode, code, cause },
    advice: [...resubmitAdvice(id), ...advice],
  });
}
