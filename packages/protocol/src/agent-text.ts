import type { KeptOutput, OutputChunk, OutputStream } from "./exec.ts";
import { assertNever, exitCodeOf, type Outcome } from "./outcome.ts";
import { signalName } from "./signals.ts";

export interface AgentTextOptions {
  readonly shownBytes: number;
}

/**
 * A result as an agent reads it: both outputs in order of arrival, cut in the middle or at the end when long, then one bracketed line
 * for each thing worth knowing, the exit code last. Success adds nothing; a job that never ran is one `ERR:` line.
 */
export function agentText(
  result: { readonly outcome: Outcome; readonly output: KeptOutput },
  { shownBytes }: AgentTextOptions,
): string {
  return textWithEnd(shownOutput(result.output, shownBytes), result.outcome);
}

/** The output as shown, followed by how the command ended. */
export function textWithEnd(body: string, outcome: Outcome): string {
  const notes = outcomeNotes(outcome);
  const code = exitCodeOf(outcome);
  if (code !== undefined && code !== 0) notes.push(`[exit ${code}]`);
  if (notes.length === 0) return body;
  return body === "" || body.endsWith("\n") ? body + notes.join("\n") : `${body}\n${notes.join("\n")}`;
}

function outcomeNotes(outcome: Outcome): string[] {
  switch (outcome.kind) {
    case "done":
    case "exited":
      return [];
    case "signalled":
      return [`[killed by ${signalName(outcome.signal)}]`];
    case "timed-out":
      return [`[timed out after ${seconds(outcome.afterMs)}]`];
    case "out-of-memory":
      return [`[out of memory: the limit is ${byteSize(outcome.limitBytes)}]`];
    case "quota-exceeded":
      return [`[stopped: ${quotaText(outcome)}]`];
    case "output-limit":
      return [`[stopped: more than ${byteSize(outcome.limitBytes)} of output]`];
    case "cancelled":
      return [`[cancelled: ${outcome.reason}]`];
    case "refused":
      return [`ERR: ${outcome.message}`];
    case "lost":
      return [`ERR: ${outcome.message}`];
    default:
      return assertNever(outcome);
  }
}

export function quotaText({
  limit,
  used,
  unit,
}: Omit<Extract<Outcome, { kind: "quota-exceeded" }>, "kind">): string {
  switch (unit) {
    case "bytes":
      return `workspace quota exceeded (${byteSize(limit)}); used ${byteSize(used)}`;
    case "entries":
      return `workspace quota exceeded (${limit} files); used ${used} files`;
    case "disk":
      return `the host's disk is nearly full (${byteSize(used)} free of the ${byteSize(limit)} that must stay free); files can be read and removed, and nothing may grow`;
  }
}

/** An agent's text between the two lines that frame a tool's answer: `[/exec ls -la]` and `[END EXEC]`. */
export function execBlock(command: string, text: string): string {
  const [first = "", ...more] = command.trim().split("\n");
  const body = text === "" || text.endsWith("\n") ? text : `${text}\n`;
  return `[/exec ${first}${more.length > 0 ? " …" : ""}]\n${body}[END EXEC]`;
}

/** Both streams in order of arrival, cut when longer than `shownBytes`: in the middle, or at the end if only the start shows. */
export function shownOutput(output: KeptOutput, shownBytes: number): string {
  const head = Buffer.concat(output.head.map((chunk) => chunk.bytes));
  const tail = Buffer.concat(output.tail.map((chunk) => chunk.bytes));
  const kept = head.length + tail.length;
  if (kept <= shownBytes && output.cutBytes === 0) return Buffer.concat([head, tail]).toString("utf8");
  const all = Buffer.concat([head, tail]);
  if (output.shows === "start") {
    const start = wholeCharactersFromStart(all.subarray(0, shownBytes));
    return `${withLineEnd(start.toString("utf8"))}${cutNote(output, start.length)}`;
  }
  const half = Math.floor(shownBytes / 2);
  // The kept middle is already cut where the head ends; showing more would hide the gap.
  const headBytes = output.cutBytes > 0 ? Math.min(half, head.length) : half;
  const tailBytes = output.cutBytes > 0 ? Math.min(half, tail.length) : half;
  const first = wholeCharactersFromStart(all.subarray(0, headBytes));
  const last = wholeCharactersFromEnd(all.subarray(all.length - tailBytes));
  const note = cutNote(output, first.length + last.length);
  return `${withLineEnd(first.toString("utf8"))}${note}\n${last.toString("utf8")}`;
}

function cutNote({ totalBytes }: KeptOutput, shown: number): string {
  return `...[output truncated: ${totalBytes - shown} of ${totalBytes} bytes cut]...`;
}

function withLineEnd(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}

/** One stream of the kept output as text; the cut middle is not marked. */
export function outputText(output: KeptOutput, stream: OutputStream): string {
  const of = (chunks: readonly OutputChunk[]) => chunks.filter((chunk) => chunk.stream === stream);
  return Buffer.concat([...of(output.head), ...of(output.tail)].map((chunk) => chunk.bytes)).toString("utf8");
}

function wholeCharactersFromStart(bytes: Buffer): Buffer {
  let end = bytes.length;
  for (let back = 1; back <= Math.min(3, end); back++) {
    const byte = bytes[end - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const width = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    if (width > back) end -= back;
    break;
  }
  return bytes.subarray(0, end);
}

function wholeCharactersFromEnd(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.subarray(start);
}

function seconds(ms: number): string {
  return `${Number((ms / 1000).toFixed(ms < 1000 ? 3 : 1))}s`;
}

/** 512 MB, 1 GB, 1.5 GB: powers of 1024 under the names people and engines use for limits. */
export function byteSize(bytes: number): string {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${Number(value.toFixed(1))} ${units[unit]}`;
}
