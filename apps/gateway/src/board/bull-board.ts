import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { createBullBoard } from "@bull-board/api";
import type { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { FastifyAdapter } from "@bull-board/fastify";
import type { FastifyPluginCallback } from "fastify";
import { failureOf } from "../http/failure.ts";
import { boardProblem } from "./pages.ts";

export interface BullBoard {
  readonly plugin: FastifyPluginCallback;
  /** Replaces the queues. `summary` appears in the strip above them. */
  show(adapters: readonly BullMQAdapter[], summary: string): void;
}

/** Bull Board with Berth's settings. */
export function bullBoard(): BullBoard {
  const adapter = new FastifyAdapter();
  // Bull Board reads it anew for each page.
  const environment = { label: "", color: "#1d4ed8", textColor: "#fff" };
  const { replaceQueues } = createBullBoard({
    queues: [],
    serverAdapter: adapter,
    options: {
      uiBasePath: dirname(fileURLToPath(import.meta.resolve("@bull-board/ui/package.json"))),
      uiConfig: {
        boardTitle: "Berth",
        hideDocsLink: true,
        // It would list every client of Redis for every queue at every poll.
        showWorkers: false,
        environment,
        miscLinks: [
          { text: "Find a tenant", url: "/board/find" },
          { text: "Approvals", url: "/board/approvals" },
          { text: "Log out", url: "/board/find#log-out" },
        ],
      },
    },
  });
  adapter.setBasePath("/board");
  adapter.setErrorHandler((error) => {
    const failure = failureOf(error);
    return { status: failure.status as 500, body: boardProblem(failure) as never };
  });
  return {
    plugin: adapter.registerPlugin() as unknown as FastifyPluginCallback,
    show: (adapters, summary) => {
      environment.label = summary;
      replaceQueues([...adapters]);
    },
  };
}
