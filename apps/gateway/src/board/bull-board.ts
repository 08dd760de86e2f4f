import { createBullBoard } from "@bull-board/api";
import type { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { FastifyAdapter } from "@bull-board/fastify";
import type { FastifyPluginCallback } from "fastify";
import { failureOf } from "../http/failure.ts";
import { problemBody } from "../http/problem.ts";

export interface BullBoard {
  readonly plugin: FastifyPluginCallback;
  /** Exactly these from now on. */
  show(adapters: readonly BullMQAdapter[]): void;
}

/** Bull Board itself, as we want it. */
export function bullBoard(): BullBoard {
  const adapter = new FastifyAdapter();
  const { replaceQueues } = createBullBoard({
    queues: [],
    serverAdapter: adapter,
    options: {
      uiConfig: {
        boardTitle: "Berth",
        hideDocsLink: true,
        // It would list every client of Redis for every queue at every poll.
        showWorkers: false,
        miscLinks: [{ text: "Find a tenant, log out", url: "/board/find" }],
      },
    },
  });
  adapter.setBasePath("/board");
  adapter.setErrorHandler((error) => {
    const failure = failureOf(error);
    return { status: failure.status as 500, body: problemBody(failure) as never };
  });
  return {
    plugin: adapter.registerPlugin() as unknown as FastifyPluginCallback,
    show: (adapters) => replaceQueues([...adapters]),
  };
}
