import { type FaultCode, type FaultContexts, type FaultEntry, faultTable } from "./fault-table.ts";

/**
 * A failure of our own machinery. Thrown, never returned; how a tenant's command ended is an `Outcome`. The table makes the message,
 * so that a code always reads the same.
 */
export class Fault<C extends FaultCode = FaultCode> extends Error {
  override readonly name = "Fault";
  readonly code: C;
  readonly context: FaultContexts[C];
  readonly retry: boolean;

  constructor(code: C, context: FaultContexts[C], options?: { cause?: unknown }) {
    const entry = faultTable[code] as FaultEntry<C>;
    super(entry.message(context), options);
    this.code = code;
    this.context = context;
    this.retry = entry.retry;
  }
}

/** Compares name and code, not the class: every package that bundles this one has its own class. */
export function isFault<C extends FaultCode>(value: unknown, code: C): value is Fault<C>;
export function isFault(value: unknown): value is Fault;
export function isFault(value: unknown, code?: FaultCode): boolean {
  if (!(value instanceof Error) || value.name !== "Fault" || !("code" in value)) return false;
  return code === undefined ? Object.hasOwn(faultTable, String(value.code)) : value.code === code;
}
