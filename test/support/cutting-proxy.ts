import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/**
 * Passes TCP connections on to a port or socket of this machine, until the test cuts or silences them. With `cutEvery`, each connection that
 * brings the n-th piece of an answer is cut instead of passing it on: some answers are lost, and the others arrive however
 * slow the machine is.
 */
export class CuttingProxy {
  readonly #target: number | string;
  readonly #open = new Set<Socket>();
  readonly #silent = new WeakSet<Socket>();
  #server: Server | undefined;
  #port = 0;
  /** Connections that were cut while they were open. */
  cuts = 0;
  cutEvery = Number.POSITIVE_INFINITY;
  /** Loses this many answers from now on, each with its connection. */
  loseNext = 0;
  /** Connections that were opened. */
  opened = 0;
  #pieces = 0;

  /** A port, or the path of a socket. */
  constructor(target: number | string) {
    this.#target = target;
  }

  get url(): string {
    return `http://${this.address}`;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** Listens, on the same port each time. */
  async start(): Promise<void> {
    const server = createServer((inner) => this.#join(inner));
    this.#server = server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#port = (server.address() as AddressInfo).port;
  }

  cut(): void {
    for (const socket of this.#open) this.#cutOne(socket);
  }

  /** Stops passing data on open connections without closing them, like a dead link. New connections work. */
  silence(): void {
    for (const socket of this.#open) this.#silent.add(socket);
  }

  /** Stops listening, and cuts all connections. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    const closed = once(server, "close");
    server.close();
    this.cut();
    await closed;
  }

  #cutOne(inner: Socket): void {
    if (!inner.destroyed) this.cuts++;
    inner.resetAndDestroy();
    this.#open.delete(inner);
  }

  #join(inner: Socket): void {
    const target = this.#target;
    const outer = connect(
      typeof target === "string" ? { path: target } : { port: target, host: "127.0.0.1" },
    );
    this.opened++;
    this.#open.add(inner);
    inner.on("data", (piece) => {
      if (!this.#silent.has(inner)) outer.write(piece);
    });
    inner.on("end", () => outer.end());
    outer.on("data", (piece) => {
      if (this.#silent.has(inner)) return;
      if (this.loseNext > 0) {
        this.loseNext--;
        this.#cutOne(inner);
      } else if (++this.#pieces % this.cutEvery === 0) this.#cutOne(inner);
      else inner.write(piece);
    });
    outer.on("end", () => inner.end());
    for (const [one, other] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      one.on("error", () => {});
      one.on("close", () => {
        other.destroy();
        this.#open.delete(inner);
      });
    }
  }
}
