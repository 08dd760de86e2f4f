import type { Socket } from "node:net";
import { EgressProxy } from "@berth/egress";
import type { Shared } from "@berth/ledger";
import { Fault, type Job, type SandboxProfile, sharedOwner, type TenantId, tenantOf } from "@berth/protocol";
import type { Sandbox, SandboxDriver } from "@berth/sandbox";
import { unlessAborted } from "@berth/tenancy";
import type { DriverSandboxOptions } from "./driver-sandbox-options.ts";
import { jobOutlet } from "./job-outlet.ts";
import type { Resolved } from "./policy.ts";

/** The container that a job needs. */
export interface Wanted extends Pick<Resolved, "profile" | "operators"> {
  /** Whose directory is at /agent; undefined: none. */
  readonly agent: string | undefined;
  /** The snapshot whose files the sandbox starts with, if it has none yet. */
  readonly forkOf: Job["forkOf"];
  /** Without its peers' files. */
  readonly peerless?: boolean;
}

/** Starts or adopts the sandbox's container. `signal`: the tenancy gives the sandbox up. */
export async function startSandbox(
  driver: SandboxDriver,
  options: DriverSandboxOptions,
  { profile, operators, agent, forkOf, peerless }: Wanted,
  { signal, leaseLeftMs }: { readonly signal: AbortSignal; readonly leaseLeftMs: () => number },
): Promise<Sandbox> {
  const { key, epoch, leaseMs, onStarted, onCopied, isHeld, tie } = options;
  refuseOpenNetwork(profile);
  const proxy = new EgressProxy(options.egress.of(profile));
  const wayOut = { onConnection: (socket: Socket) => proxy.accept(socket) };
  const shared: Shared[] = [
    ...(profile.toolsAccess === "none" ? [] : (["tools"] as const)),
    ...(agent === undefined ? [] : ([`agent.${agent}`] as const)),
  ];
  if (shared.length > 0) await unlessAborted(tie(shared), signal);
  const peers = async () => (peerless ? [] : await peersOf(options));
  if (forkOf !== undefined) await options.snapshots.fork(forkOf, { key, profile }, signal);
  const askedMs = performance.now();
  const setUp = { tenant: tenantOf(key), jobId: "set-up" };
  const outputFilter = () => jobOutlet(options, setUp, profile).filter();
  const request = {
    ...{ key, epoch, leaseMs, leaseLeftMs, profile, operators, agent },
    ...{ isHeld, outputFilter, wayOut, peers, onSnapshot: onCopied },
  };
  const sandbox = await driver.start(request, { signal });
  try {
    const { how, link } = sandbox.origin;
    const opened = { how, link, ms: Math.round(performance.now() - askedMs) };
    await unlessAborted(onStarted(opened, signal), signal);
    return sandbox;
  } catch (error) {
    await sandbox.stop();
    throw error;
  }
}

/** Tenants whose files the sandbox may read. Throws if this host does not have them. */
async function peersOf({ key, grants, tie }: DriverSandboxOptions): Promise<readonly TenantId[]> {
  const tenant = tenantOf(key);
  if (tenant === sharedOwner) return [];
  const peers = await grants.peersOf(tenant);
  if (peers.length > 0) await tie(peers.map((peer) => `team.${peer}` as const));
  return peers;
}

/** On a network of its own a command reaches more than the egress rules allow. */
function refuseOpenNetwork({ egress, network }: SandboxProfile): void {
  if (egress.length === 0 || network === "none") return;
  const detail = `its network is ${network}, on which commands reach more than the rules allow`;
  throw new Fault("egress-unavailable", { detail });
}
