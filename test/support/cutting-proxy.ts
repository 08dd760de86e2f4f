import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Passes TCP connections on to a port of this machine, until somebody cuts them. */
export class CuttingProxy {
  readonly #target: number;
  readonly #open = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;
  /** Connections that were cut while they were open. */
  cuts = 0;

  constructor(target: number) {
    this.#target = target;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** On the same port each time. */
  async start(): Promise<void> {
    const server = createServer((inner) => this.#join(inner));
    this.#server = server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#port = (server.address() as AddressInfo).port;
  }

  cut(): void {
    for (const socket of this.#open) {
      if (!socket.destroyed) this.cuts++;
      socket.resetAndDestroy();
    }
    this.#open.clear();
  }

  /** Nobody listens any more, and what was open is cut. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    const closed = once(server, "close");
    server.close();
    this.cut();
    await closed;
  }

  #join(inner: Socket): void {
    const outer = connect(this.#target, "127.0.0.1");
    this.#open.add(inner);
    for (const [one, other] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      one.pipe(other);
      one.on("error", () => {});
      one.on("close", () => {
        other.destroy();
        this.#open.delete(inner);
      });
    }
  }
}
