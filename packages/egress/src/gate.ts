import { connect, type OnReadOpts, type Socket } from "node:net";
import { BoundedWait, coversHost, type EgressRule, readEgressRule } from "@berth/protocol";
import { Allowance, type EgressCeilings } from "./allowance.ts";
import { EgressMeter, type EgressReport, type Traffic } from "./meter.ts";
import {
  AddressRefused,
  type IsOwn,
  isOwnAddress,
  isPublicAddress,
  type PinnedAddress,
  pinnedAddresses,
  type Resolver,
  systemResolver,
} from "./public-address.ts";
import { shownTarget, type Target } from "./target.ts";

const resolveMs = 5_000;
const connectMs = 10_000;
/** Maximum of addresses of one name to try. */
const mostTried = 3;

export type DenialWhy = "rule" | "address" | "ceiling" | "unreachable";

/** A refused connection and the reason. The message is for the agent. */
export class EgressDenied extends Error {
  override readonly name = "EgressDenied";
  readonly why: DenialWhy;
  /** The HTTP status of the refusal. */
  readonly short: string;

  constructor(why: DenialWhy, short: string, message: string) {
    super(message);
    this.why = why;
    this.short = short;
  }
}

export interface EgressGateOptions {
  readonly rules: readonly string[];
  readonly ceilings: EgressCeilings;
  readonly report: (report: EgressReport) => void;
  readonly resolve?: Resolver;
  readonly isOwn?: IsOwn;
}

/** A connection that is open. */
interface Open {
  readonly target: Target;
  readonly pinned: PinnedAddress;
}

/** Decides which connections a sandbox may make, makes them, and counts bytes. Both the proxy and downloads use it. */
export class EgressGate {
  readonly allowance: Allowance;
  readonly meter: EgressMeter;
  readonly #resolve: Resolver;
  readonly #isOwn: IsOwn;
  readonly #open = new Map<Socket, Open>();
  #texts: readonly string[] | undefined;
  #rules: readonly EgressRule[] = [];

  constructor({
    rules,
    ceilings,
    report,
    resolve = systemResolver,
    isOwn = isOwnAddress,
  }: EgressGateOptions) {
    this.allowance = new Allowance(ceilings);
    this.meter = new EgressMeter(report);
    this.#resolve = resolve;
    this.#isOwn = isOwn;
    this.replace(rules, ceilings);
  }

  /** Replaces rules and ceilings. Closes open connections that the new rules forbid. */
  replace(rules: readonly string[], ceilings: EgressCeilings): void {
    this.allowance.replace(ceilings);
    if (rules === this.#texts) return;
    this.#texts = rules;
    this.#rules = rules.flatMap((text) => readEgressRule(text) ?? []);
    for (const [socket, { target, pinned }] of this.#open)
      if (!this.#allowsTarget(target) || !this.#isReachable(target, pinned)) socket.destroy();
  }

  /** Connects, or throws `EgressDenied`. The caller owns the socket, and reports its bytes with `count`. */
  async connect(target: Target, signal?: AbortSignal, onread?: OnReadOpts): Promise<Socket> {
    try {
      const addresses = await this.#admit(target, signal);
      const { socket, pinned } = await firstOf(addresses, { target, onread }, signal);
      this.#open.set(socket, { target, pinned });
      socket.once("close", () => this.#open.delete(socket));
      this.meter.add(target, { requests: 1 });
      return socket;
    } catch (error) {
      this.meter.add(target, { requests: 1, denied: 1 });
      throw error;
    }
  }

  /** Returns how long to wait before more bytes may pass; undefined: no more for this hour. */
  count(target: Target, traffic: Traffic): number | undefined {
    this.meter.add(target, traffic);
    const waitMs = this.allowance.book((traffic.sentBytes ?? 0) + (traffic.receivedBytes ?? 0));
    return this.allowance.hourIsUsed ? undefined : waitMs;
  }

  async #admit(target: Target, signal: AbortSignal | undefined): Promise<readonly PinnedAddress[]> {
    const { host, port } = target;
    const shown = shownTarget(target);
    if (!this.#allowsTarget(target)) {
      const ports = this.#rules.filter((rule) => coversHost(rule, host)).flatMap((rule) => rule.ports);
      const only = ports.length > 0 ? ` (allowed of it: port ${ports.join(", ")})` : "";
      throw new EgressDenied(
        "rule",
        `egress has no rule for ${shown}`,
        `${shown} is not in the egress rules of this sandbox's profile${only}. Ask the operator to add "${shown}" to the profile's egress.`,
      );
    }
    if (this.allowance.hourIsUsed) throw hourUsed();
    if (host.kind === "address") return [{ address: host.host, family: host.host.includes(":") ? 6 : 4 }];
    using wait = new BoundedWait().endAfter(resolveMs);
    if (signal) wait.endWith(signal);
    const late = new Promise<never>((_, reject) => {
      const onEnd = () => reject(unreachable(shown, `its name was not resolved within ${resolveMs} ms`));
      wait.signal.addEventListener("abort", onEnd, { once: true });
    });
    late.catch(() => {});
    try {
      const named = (one: PinnedAddress) => this.#allowsAddress(one, port);
      return await Promise.race([pinnedAddresses(host.host, named, this.#resolve, this.#isOwn), late]);
    } catch (error) {
      if (!(error instanceof AddressRefused)) throw error;
      if (!/not a public/.test(error.message)) throw unreachable(shown, error.message);
      const [, at = ""] = /is at (\S+),/.exec(error.message) ?? [];
      throw new EgressDenied(
        "address",
        `${shown} leads to a private address`,
        `${error.message}. If it is meant, ask the operator to add "${at.includes(":") ? `[${at}]` : at}:${port}" to the profile's egress beside the name.`,
      );
    }
  }

  #allowsTarget({ host, port }: Target): boolean {
    return this.#rules.some((rule) => rule.ports.includes(port) && coversHost(rule, host));
  }

  /** Resolves a name, and returns only addresses that the rules allow. */
  #isReachable({ host, port }: Target, pinned: PinnedAddress): boolean {
    if (host.kind === "address" || this.#allowsAddress(pinned, port)) return true;
    return isPublicAddress(pinned.address) && !this.#isOwn(pinned.address);
  }

  #allowsAddress({ address, family }: PinnedAddress, port: number): boolean {
    if (address.includes("%")) return false;
    const host = family === 6 ? new URL(`http://[${address}]/`).hostname.slice(1, -1) : address;
    return this.#rules.some(
      (rule) => rule.ports.includes(port) && coversHost(rule, { kind: "address", host }),
    );
  }
}

export function hourUsed(): EgressDenied {
  const message =
    "this sandbox has sent and received all the bytes that it may in an hour (limits.egressBytesPerHour).";
  return new EgressDenied(
    "ceiling",
    "egress of this hour is used up",
    `${message} Wait, or ask the operator for more.`,
  );
}

function unreachable(shown: string, detail: string): EgressDenied {
  return new EgressDenied(
    "unreachable",
    `${shown} cannot be reached`,
    `${shown} cannot be reached: ${detail}.`,
  );
}

async function firstOf(
  addresses: readonly PinnedAddress[],
  { target, onread }: { readonly target: Target; readonly onread: OnReadOpts | undefined },
  signal: AbortSignal | undefined,
): Promise<{ readonly socket: Socket; readonly pinned: PinnedAddress }> {
  let detail = "";
  for (const pinned of addresses.slice(0, mostTried)) {
    try {
      const socket = await connectTo({ ...pinned, port: target.port, onread }, signal);
      return { socket, pinned };
    } catch (error) {
      detail = error instanceof Error ? error.message : String(error);
    }
  }
  throw unreachable(shownTarget(target), detail);
}

interface Wanted extends PinnedAddress {
  readonly port: number;
  readonly onread: OnReadOpts | undefined;
}

function connectTo(
  { address: host, family, port, onread }: Wanted,
  signal: AbortSignal | undefined,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    // The address was resolved already: connect to exactly the one that was checked.
    const socket = connect({
      ...{ host, port, family, noDelay: true, allowHalfOpen: true },
      ...(onread ? { onread } : {}),
    });
    const end = (error: Error) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      socket.destroy();
      reject(error);
    };
    const onAbort = () => end(new Error("it was ended"));
    const timer = setTimeout(() => end(new Error(`no connection within ${connectMs} ms`)), connectMs);
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) return onAbort();
    socket.once("error", end);
    socket.once("connect", () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      socket.off("error", end);
      socket.on("error", () => {});
      resolve(socket);
    });
  });
}
