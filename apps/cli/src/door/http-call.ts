import { setTimeout as sleep } from "node:timers/promises";
import { faultCodes } from "@berth/protocol";
import { Complaint, exitCodeOfFault, faultAdvice, resubmitAdvice } from "../complaint.ts";
import { exitCodes } from "../exit-codes.ts";

export interface CallOptions {
  readonly body?: unknown;
  /** A raw body, of the type that `headers` names. */
  readonly text?: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Safe to retry on a broken connection or an unavailable gateway. Default: true for GET and DELETE. */
  readonly repeatable?: boolean;
  /** Called before a retry if the gateway may have carried out the first try. */
  readonly onLost?: () => void;
}

/** Most times that a request is sent while the gateway answers with Retry-After. */
const mostTries = 8;
const longestPauseMs = 5_000;
const firstPauseMs = 200;
/** Codes of a broken connection, of a proxy without its gateway, and of a gateway without its Redis. */
const away = new Set([
  ...["gateway-unreachable", "redis-unreachable", "unavailable"],
  ...["http-502", "http-503", "http-504"],
]);

/** Failures after which the caller cannot know whether the gateway carried the call out. */
const lost = new Set(["gateway-unreachable", "redis-unreachable", "http-502", "http-504"]);

/** Requests to one gateway. A refusal is thrown as a Complaint with the gateway's sentence and code. */
export class HttpCalls {
  readonly address: string;
  readonly #base: URL;
  readonly #key: string | undefined;
  readonly #closed = new AbortController();
  /** How long repeatable calls are retried while the gateway is away. */
  outageMs = 10_000;
  #answeredMs = 0;

  constructor(url: string, key: string | undefined) {
    this.#base = new URL(url.endsWith("/") ? url : `${url}/`);
    this.address = this.#base.origin;
    this.#key = key;
  }

  /** The JSON of the answer; undefined for an empty body. */
  async json<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    const text = await this.#withRetries(method, options, async () => {
      const response = await this.#answered(method, path, options);
      return response.text().catch((error: unknown) => {
        throw this.#unreachable(error);
      });
    });
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  /** Undefined for 404. */
  find<T>(method: string, path: string): Promise<T | undefined> {
    return this.json<T>(method, path).catch(undefinedWhenMissing);
  }

  /** False for 404, unless it answers a DELETE that was sent again: the first, whose answer got lost, was carried out. */
  async isThere(method: string, path: string): Promise<boolean> {
    let isLost = false;
    const onLost = () => {
      isLost = true;
    };
    try {
      await this.json(method, path, { onLost });
      return true;
    } catch (error) {
      undefinedWhenMissing(error);
      return method === "DELETE" && isLost;
    }
  }

  response(method: string, path: string, options: CallOptions = {}): Promise<Response> {
    return this.#withRetries(method, options, () => this.#answered(method, path, options));
  }

  get closed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** Aborts open requests. */
  close(): void {
    this.#closed.abort();
  }

  async #withRetries<T>(method: string, options: CallOptions, call: () => Promise<T>): Promise<T> {
    const { repeatable = method === "GET" || method === "DELETE" } = options;
    let failedMs: number | undefined;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      try {
        return await call();
      } catch (error) {
        if (!repeatable || !(error instanceof Complaint) || !away.has(error.code ?? "")) throw error;
        const now = performance.now();
        failedMs ??= now;
        // The gateway is not away while it answers other calls.
        if (now - Math.max(failedMs, this.#answeredMs) >= this.outageMs) throw error;
        if (mayBeDone(error)) options.onLost?.();
        await sleep(pauseMs * (0.5 + Math.random() / 2), undefined, { signal: this.#closed.signal });
      }
    }
  }

  async #answered(method: string, path: string, options: CallOptions): Promise<Response> {
    for (let tries = 1; ; tries++) {
      const response = await this.#send(method, path, options);
      if (response.ok) {
        this.#answeredMs = performance.now();
        return response;
      }
      const pauseMs = Number(response.headers.get("retry-after") ?? Number.NaN) * 1_000;
      if (![429, 503].includes(response.status) || Number.isNaN(pauseMs) || tries >= mostTries)
        throw await refusal(response);
      if (mayBeDone(await refusal(response))) options.onLost?.();
      await sleep(Math.min(pauseMs, longestPauseMs), undefined, { signal: this.#closed.signal });
    }
  }

  async #send(
    method: string,
    path: string,
    { body, text, query = {}, headers, signal }: CallOptions,
  ): Promise<Response> {
    const until = signal ? AbortSignal.any([signal, this.#closed.signal]) : this.#closed.signal;
    const url = new URL(path.replace(/^\//, ""), this.#base);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    try {
      return await fetch(url, {
        method,
        redirect: "error",
        headers: {
          ...(this.#key === undefined ? {} : { authorization: `Bearer ${this.#key}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(text === undefined ? {} : { body: text }),
        signal: until,
      });
    } catch (error) {
      if (until.aborted) throw error;
      throw this.#unreachable(error);
    }
  }

  #unreachable(error: unknown): Complaint {
    const { cause, message } = error as Error;
    const detail = cause instanceof Error && cause.message !== "" ? cause.message : message;
    return new Complaint(`no gateway answers at ${this.address} (${detail})`, {
      exitCode: exitCodes.unreachable,
      code: "gateway-unreachable",
      advice: ["start it, correct BERTH_URL, or unset BERTH_URL to talk to Redis itself"],
      cause: error,
    });
  }
}

const advice: Readonly<Record<string, string>> = {
  unauthorized:
    "set BERTH_KEY to a key of this gateway; where Redis can be reached, `REDIS_URL=… BERTH_URL= berth key create NAME --admin` makes one",
  forbidden: "set BERTH_KEY to an admin key, or name the tenant that it belongs to",
  "body-too-large": "send less at once, or raise BERTH_GATEWAY_BODY_BYTES at the gateway",
};

async function refusal(response: Response): Promise<Complaint> {
  const { status } = response;
  const text = await response.text().catch(() => "");
  const { code = `http-${status}`, detail, problems = [], jobId } = problemIn(text);
  const sentences = problems.length > 0 ? problems.join("; ") : (detail ?? `it answered ${status}`);
  const hint = advice[code];
  const fault = faultCodes.find((one) => one === code);
  return new Complaint(`the gateway refused: ${sentences}`, {
    code,
    exitCode: exitCodeOf(status, code),
    advice: [
      ...resubmitAdvice(jobId),
      ...(fault === undefined ? (hint === undefined ? [] : [hint]) : faultAdvice(fault)),
    ],
  });
}

function problemIn(text: string): { code?: string; detail?: string; problems?: string[]; jobId?: string } {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function exitCodeOf(status: number, code: string): number {
  if (status === 400) return exitCodes.usage;
  if (status === 401) return exitCodes.badConfig;
  return exitCodeOfFault(code);
}

function mayBeDone({ code = "", cause }: Complaint): boolean {
  const refused = cause instanceof Error && cause.cause instanceof Error && "code" in cause.cause;
  return lost.has(code) && !(refused && (cause.cause as NodeJS.ErrnoException).code === "ECONNREFUSED");
}

function undefinedWhenMissing(error: unknown): undefined {
  if (error instanceof Complaint && error.code === "not-found") return;
  throw error;
}

/** Builds a path and escapes its values: path`/v1/jobs/${id}`. */
export function path(texts: TemplateStringsArray, ...values: readonly string[]): string {
  return texts.reduce((whole, text, index) => whole + encodeURIComponent(values[index - 1] ?? "") + text);
}
