import { Fault, isFault } from "@berth/protocol";
import Docker from "dockerode";
import { CircuitBreaker } from "./circuit-breaker.ts";
import { engineFault } from "./engine-error.ts";

export interface EngineOptions {
  /** `unix:///path`, `tcp://host:port`, `http://…`; the platform's default socket when absent. */
  readonly host?: string | undefined;
  /** Deadline of an ordinary call. */
  readonly deadlineMs: number;
  /** Deadline of create, start and remove, which wait for disks and kernels. */
  readonly slowDeadlineMs: number;
}

export interface EngineCall {
  readonly signal?: AbortSignal | undefined;
  readonly deadlineMs?: number | undefined;
  /** Called with an answer that came after the caller had given up. */
  readonly discard?: (late: unknown) => void;
}

export const defaultEngineOptions = { deadlineMs: 10_000, slowDeadlineMs: 60_000 } as const;

/**
 * The container engine behind a deadline, an abort signal and a circuit breaker. Every use of dockerode goes through
 * `call`, so that no caller waits for the engine without a bound, even if dockerode ignores the signal.
 */
export class Engine {
  readonly docker: Docker;
  readonly address: string;
  readonly slowDeadlineMs: number;
  readonly #deadlineMs: number;
  readonly #breaker = new CircuitBreaker({
    failures: 5,
    pauseMs: 1_000,
    maxPauseMs: 30_000,
    now: () => performance.now(),
  });

  constructor(options: EngineOptions) {
    const connection = connectionOptions(options.host);
    this.address = connection.address;
    this.docker = new Docker(connection.docker);
    this.#deadlineMs = options.deadlineMs;
    this.slowDeadlineMs = options.slowDeadlineMs;
  }

  async call<T>(
    name: string,
    run: (abortSignal: AbortSignal) => Promise<T>,
    options: EngineCall = {},
  ): Promise<T> {
    const { signal, deadlineMs = this.#deadlineMs } = options;
    if (signal?.aborted) throw new Fault("aborted", { operation: name }, { cause: signal.reason });
    this.#breaker.enter();
    const controller = new AbortController();
    const interrupted = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => interrupted.reject(new Fault("engine-timeout", { call: name, deadlineMs })),
      deadlineMs,
    );
    const onAbort = () =>
      interrupted.reject(new Fault("aborted", { operation: name }, { cause: signal?.reason }));
    signal?.addEventListener("abort", onAbort, { once: true });
    const running = Promise.try(run, controller.signal);
    try {
      const value = await Promise.race([running, interrupted.promise]);
      this.#breaker.succeeded();
      return value;
    } catch (error) {
      const fault = engineFault(name, this.address, error);
      if (isFault(fault, "engine-timeout") || isFault(fault, "engine-unreachable")) this.#breaker.failed();
      else if (isFault(fault, "aborted")) this.#breaker.abandoned();
      else this.#breaker.succeeded();
      running.then(options.discard, () => {});
      controller.abort();
      throw fault;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }
}

function connectionOptions(host: string | undefined): { docker: Docker.DockerOptions; address: string } {
  const address = host ?? "unix:///var/run/docker.sock";
  if (address.startsWith("unix://"))
    return { docker: { socketPath: address.slice("unix://".length) }, address };
  const url = new URL(address.replace(/^tcp:/, "http:"));
  const protocol = url.protocol === "https:" ? "https" : "http";
  return { docker: { host: url.hostname, port: url.port || "2375", protocol }, address };
}
