import { type EventEmitter, once } from "node:events";
import { within } from "./within.ts";

interface Log {
  isLevelEnabled(level: "info"): boolean;
  info(line: Readonly<Record<string, unknown>>): void;
}

/** A log reader that hangs delays the exit by at most this. */
const writtenWithinMs = 1_000;

/**
 * Writes a program's last line, and waits until all lines are written or the reader is gone. At exit pino writes what is left, and into a
 * broken pipe it retries for ever.
 */
export async function writeLastLine(
  log: Log,
  output: EventEmitter,
  line: Readonly<Record<string, unknown>>,
): Promise<void> {
  if (!log.isLevelEnabled("info")) return;
  const written = once(output, "drain").catch(() => {});
  log.info(line);
  await within(writtenWithinMs, written);
}
