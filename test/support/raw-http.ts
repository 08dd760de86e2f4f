import { connect, type Socket } from "node:net";

/** What a server said to bytes that no polite client sends. */
export interface RawAnswer {
  readonly status: number;
  readonly text: string;
  /** From the first byte sent until the server closed the connection. */
  readonly ms: number;
}

/** Sends bytes as they are and gathers what comes until the server closes, or the time is over. */
export async function raw(
  port: number,
  pieces: string | readonly string[],
  options: { readonly pauseMs?: number; readonly maxMs?: number } = {},
): Promise<RawAnswer> {
  const { pauseMs = 0, maxMs = 15_000 } = options;
  const startedMs = performance.now();
  const socket = connect(port, "127.0.0.1");
  let text = "";
  const closed = new Promise<void>((resolve) => {
    socket.on("data", (chunk) => {
      text += chunk;
    });
    socket.on("error", () => resolve());
    socket.on("close", () => resolve());
    setTimeout(() => {
      socket.destroy();
      resolve();
    }, maxMs).unref();
  });
  await Promise.race([send(socket, typeof pieces === "string" ? [pieces] : pieces, pauseMs), closed]);
  await closed;
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0);
  return { status, text, ms: performance.now() - startedMs };
}

async function send(socket: Socket, pieces: readonly string[], pauseMs: number): Promise<void> {
  for (const piece of pieces) {
    if (socket.destroyed) return;
    socket.write(piece, "latin1");
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** How many answers are in what came back: more than one means that one request was taken for two. */
export function answersIn({ text }: RawAnswer): number {
  return text.split("HTTP/1.1 ").length - 1;
}
