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
  readonly retries: string[];
}

/** Listens to a job's events until the gateway ends the stream; or until `enough` says so. */
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
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) take(block, read);
    if (enough(read)) break;
  }
  leave.abort();
  return read;
}

function take(block: string, { events, comments, retries }: SseRead): void {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const [, name = "", value = ""] = /^([^:]*): ?(.*)$/.exec(line) ?? [];
    if (name === "") comments.push(value);
    else if (name === "retry") retries.push(value);
    else fields.set(name, value);
  }
  const data = fields.get("data");
  if (data !== undefined) {
    events.push({ id: fields.get("id") ?? "", event: fields.get("event") ?? "", data: JSON.parse(data) });
  }
}
