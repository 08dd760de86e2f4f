import type { FastifyRequest } from "fastify";

/** Time limit for the rest of a body after its request was answered. */
const lateBodyMs = 10_000;

/** Closes a connection if its request was answered, no handler reads the body, and the rest of the body is late. */
export function boundLateBody({ raw }: FastifyRequest): void {
  if (raw.complete || raw.destroyed) return;
  const end = () => {
    if (!raw.complete) raw.socket.destroy();
  };
  setTimeout(end, lateBodyMs).unref();
}
