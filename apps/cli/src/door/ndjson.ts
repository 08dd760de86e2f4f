/** The lines of an answer as JSON. The last one counts only with its newline: what was cut off is no line. */
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
