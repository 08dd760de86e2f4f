/** Parses the lines of an answer. A last line without its newline was cut off and does not count. */
export async function* ndjsonLines<T>(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<T> {
  const decoder = new TextDecoder();
  let rest: string[] = [];
  for await (const piece of pieces) {
    const lines = decoder.decode(piece, { stream: true }).split("\n");
    const last = lines.pop() ?? "";
    for (const line of lines) {
      const text = rest.join("") + line;
      rest = [];
      if (text !== "") yield JSON.parse(text);
    }
    if (last !== "") rest.push(last);
  }
}
