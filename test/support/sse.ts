import { createParser } from "eventsource-parser";
import type { CallOptions, TestGateway } from "./gateway.ts";

export interface SseEvent {
  readonly id: string;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect of it
  readonly data: any;
}

export interface SseRead {
  readonly events: SseEvent[];
  readonly comments: string[];
  readonly retries: number[];
}

/** Listens to a job's events until the gateway ends the stream; or until `enough` returns true. */
export async function listen(
  gateway: TestGateway,
  path: string,
  options: CallOptions = {},
  enough: (read: SseRead) => boolean = () => false,
): Promise<SseRead> {
  const leave = new AbortController();
  const response = await gateway.fetch("GET", path, { ...options, signal: leave.signal });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  const read: SseRead = { events: [], comments: [], retries: [] };
  const parser = createParser({
    onEvent: ({ id = "", event = "", data }) => read.events.push({ id, event, data: JSON.parse(data) }),
    onComment: (comment) => read.comments.push(comment),
    onRetry: (ms) => read.retries.push(ms),
  });
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (enough(read)) break;
  }
  leave.abort();
  return read;
}
