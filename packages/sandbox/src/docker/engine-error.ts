import { Fault } from "@berth/protocol";

/** The fields of docker-modem's and Node's errors that are read here. */
interface EngineError {
  readonly statusCode?: number;
  readonly code?: string;
  readonly reason?: string;
  readonly message: string;
  readonly json?: { readonly message?: string } | null;
}

/** docker-modem puts this before the engine's message. */
const modemPrefix = /^\(HTTP code \d+\) [^-]* - /;

const unreachableCodes = new Set([
  "ECONNREFUSED",
  "ENOENT",
  "EACCES",
  "ECONNRESET",
  "EPIPE",
  "ENOTFOUND",
  "EHOSTUNREACH",
]);

/** Translates an error of the engine into a fault. No other file knows the form of these errors. */
export function engineFault(call: string, address: string, error: unknown): Fault {
  if (error instanceof Fault) return error;
  const { statusCode, code, json, message } = error as EngineError;
  if (statusCode !== undefined) {
    const detail = (json?.message ?? message.replace(modemPrefix, "")).trim().slice(0, 1000);
    return new Fault("engine-refused", { call, status: statusCode, detail }, { cause: error });
  }
  if (code !== undefined && unreachableCodes.has(code)) {
    return new Fault("engine-unreachable", { address, detail: code }, { cause: error });
  }
  return new Fault("engine-unreachable", { address, detail: message.slice(0, 200) }, { cause: error });
}

export function refusedWith(error: unknown, ...statuses: number[]): boolean {
  return (
    error instanceof Fault &&
    error.code === "engine-refused" &&
    statuses.includes((error as Fault<"engine-refused">).context.status)
  );
}
