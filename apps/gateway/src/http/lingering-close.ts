import type { FastifyReply } from "fastify";

/** Of the rest of a body, so much is read, for so long in all, and for so long while nothing comes. */
const mostBytes = 64 * 1024 * 1024;
const mostMs = 10_000;
const idleMs = 2_000;

/**
 * Answers a request whose body is still on its way. If the connection were closed at once, a client that first writes all of its body
 * would find the connection reset, and no answer. So what it still sends is read and dropped, within bounds, and then the connection
 * ends.
 */
export function answerAndLinger(reply: FastifyReply, status: number, body: string): void {
  const { raw, request } = reply;
  const message = request.raw;
  reply.hijack();
  // What came of the body is not kept any more.
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
  // The reader of its lines has stopped.
  message.removeAllListeners("readable");
  message.on("error", () => {});
  message.on("data", drop).once("end", end).once("close", end).resume();
}
