import type { FastifyRequest } from "fastify";

/** What is still to come of a body whose request was answered may take so long. */
const lateBodyMs = 10_000;

/** Ends the connection of a request that was answered, and whose body no handler reads, if the rest of it does not come. */
export function boundLateBody({ raw }: FastifyRequest): void {
  if (raw.complete || raw.destroyed) return;
  const end = () => {
    if (!raw.complete) raw.socket.destroy();
  };
  setTimeout(end, lateBodyMs).unref();
}
