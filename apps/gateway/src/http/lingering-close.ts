import type { FastifyReply } from "fastify";

/** Bounds on the rest of a body: bytes, total time, time without data. */
const mostBytes = 64 * 1024 * 1024;
const mostMs = 10_000;
const idleMs = 2_000;

/**
 * Answers a request whose body is still arriving. Closing at once would reset the connection, and a client that writes its whole
 * body first would never see the answer. So this reads and drops the rest within bounds, and then closes the
 * connection.
 */
export function answerAndLinger(reply: FastifyReply, status: number, body: string): void {
  const { raw, request } = reply;
  const message = request.raw;
  reply.hijack();
  // The part received so far is not needed.
  request.bodyHold?.end();
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) raw.setHeader(name, value);
  raw.writeHead(status, { "content-length": Buffer.byteLength(body), connection: "close" });
  raw.write(body);

  let left = mostBytes;
  const end = () => {
    clearTimeout(whole);
    clearTimeout(idle);
    message.off("data", drop).off("end", end).off("close", end);
    raw.end();
  };
  const drop = (piece: Buffer) => {
    left -= piece.length;
    idle.refresh();
    if (left < 0) end();
  };
  const whole = setTimeout(end, mostMs);
  const idle = setTimeout(end, idleMs);
  // The reader of the lines has stopped.
  message.removeAllListeners("readable");
  message.on("error", () => {});
  message.on("data", drop).once("end", end).once("close", end).resume();
}
