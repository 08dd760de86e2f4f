export interface ServerEvent {
  readonly id: string;
  readonly type: string;
  readonly data: string;
}

/** The events of a `text/event-stream`, as they come. One that is cut off in the middle is left out. */
export async function* serverEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  let id = "";
  let type = "";
  let data: string[] = [];
  for await (const line of lines(body)) {
    if (line === "") {
      if (data.length > 0) yield { id, type: type === "" ? "message" : type, data: data.join("\n") };
      type = "";
      data = [];
      continue;
    }
    // A line that begins with a colon is a comment, and keeps the connection awake.
    const [, field = "", value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (field === "id") id = value;
    else if (field === "event") type = value;
    else if (field === "data") data.push(value);
  }
}

async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    const whole = rest.split(/\r\n|\n|\r(?!$)/);
    rest = whole.pop() ?? "";
    yield* whole;
  }
}
