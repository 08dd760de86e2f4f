import type { Server } from "node:http";
import type { Socket } from "node:net";

/**
 * Tracks connections that have not sent a complete request. Clients open some in advance, and a stopping server would wait for
 * them: Node treats a connection as idle only after its first answer.
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
