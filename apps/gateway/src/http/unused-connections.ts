import type { Server } from "node:http";
import type { Socket } from "node:net";

/**
 * Connections that have not brought a whole request yet. Clients open some ahead of need, and a server that stops would wait for them:
 * to Node only one that has had an answer is idle.
 */
export class UnusedConnections {
  readonly #sockets = new Set<Socket>();

  constructor(server: Server) {
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    server.on("request", ({ socket }) => this.#sockets.delete(socket));
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
