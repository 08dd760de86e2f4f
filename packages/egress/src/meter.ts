import type { EgressUse } from "@berth/protocol";
import { shownTarget, type Target } from "./target.ts";

export interface Traffic {
  readonly requests?: number;
  readonly denied?: number;
  readonly sentBytes?: number;
  readonly receivedBytes?: number;
}

type HostUse = EgressUse["hosts"][number];
type Sums = { -readonly [K in keyof HostUse]: HostUse[K] };

/** Maximum of hosts counted separately; the tenant chooses their names. */
const mostHosts = 256;
const mostShown = 32;
const others = { host: "others", port: 0 };

/** Sums by host and port, with a bounded number of entries. */
class Account {
  readonly #hosts = new Map<string, Sums>();
  #beyond = 0;
  shared = false;

  add(target: Target, traffic: Traffic): void {
    const name = shownTarget(target);
    const isKnown = this.#hosts.has(name) || this.#hosts.size < mostHosts;
    const place = isKnown ? { host: target.host.host, port: target.port } : others;
    const at = isKnown ? name : "";
    const zero = { requests: 0, denied: 0, sentBytes: 0, receivedBytes: 0 };
    const sums = this.#hosts.get(at) ?? { ...place, ...zero };
    this.#hosts.set(at, sums);
    if (!isKnown) this.#beyond += traffic.requests ?? 0;
    for (const field of Object.keys(zero) as (keyof typeof zero)[]) sums[field] += traffic[field] ?? 0;
  }

  get use(): EgressUse | undefined {
    if (this.#hosts.size === 0) return undefined;
    const all = [...this.#hosts.values()];
    const size = ({ sentBytes, receivedBytes }: HostUse) => sentBytes + receivedBytes;
    const hosts = all.toSorted((a, b) => size(b) - size(a)).slice(0, mostShown);
    const more = all.length - hosts.length + this.#beyond;
    return {
      sentBytes: all.reduce((sum, one) => sum + one.sentBytes, 0),
      receivedBytes: all.reduce((sum, one) => sum + one.receivedBytes, 0),
      hosts,
      ...(more > 0 ? { moreHosts: more } : {}),
      shared: this.shared,
    };
  }
}

/** Traffic since the last report, and the jobs that ran; none: traffic of background processes. */
export interface EgressReport extends EgressUse {
  readonly jobs: readonly string[];
}

/**
 * Counts a sandbox's traffic, for its running jobs and for the audit log. Connections do not carry a job's id, so traffic while several
 * jobs run is counted for each of them and marked as shared.
 */
export class EgressMeter {
  readonly #jobs = new Map<string, Account>();
  readonly #report: (report: EgressReport) => void;
  #account = new Account();
  #reported = new Set<string>();

  constructor(report: (report: EgressReport) => void) {
    this.#report = report;
  }

  /** Call the returned function when the job is over. */
  begin(jobId: string): () => EgressUse | undefined {
    const own = new Account();
    this.#jobs.set(jobId, own);
    return () => {
      if (this.#jobs.get(jobId) === own) this.#jobs.delete(jobId);
      this.flush();
      return own.use;
    };
  }

  add(target: Target, traffic: Traffic): void {
    this.#account.add(target, traffic);
    for (const [id, account] of this.#jobs) {
      this.#reported.add(id);
      account.add(target, traffic);
      account.shared ||= this.#jobs.size > 1;
    }
  }

  /** Reports traffic that was not reported yet. */
  flush(): void {
    const { use } = this.#account;
    if (!use) return;
    const jobs = [...this.#reported];
    this.#account = new Account();
    this.#reported = new Set();
    this.#report({ ...use, shared: jobs.length > 1, jobs });
  }
}
