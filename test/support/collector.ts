import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { expect } from "vitest";
import { type SentSpan, sentSpans } from "./otlp.ts";

/** Takes OTLP over HTTP, as a real collector does, and keeps what it was sent. */
export class Collector implements AsyncDisposable {
  readonly spans: SentSpan[] = [];
  /** Bodies as they came, for tests that search them for what must not be there. */
  bytes = Buffer.alloc(0);
  requests = 0;
  lastHeaders: IncomingHttpHeaders = {};
  /** The status of all answers; `never`: no answer. */
  answers: number | "never" = 200;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      void buffer(request).then((body) => {
        this.requests++;
        this.lastHeaders = request.headers;
        if (this.answers === "never") return;
        if (this.answers < 300 && request.url === "/v1/traces") this.#keep(body);
        response.writeHead(request.url === "/v1/traces" ? this.answers : 404).end();
      });
    });
  }

  static async start(): Promise<Collector> {
    const collector = new Collector();
    collector.#server.listen(0, "127.0.0.1");
    await once(collector.#server, "listening");
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Variables that switch an app's tracing on. */
  get env(): { OTEL_EXPORTER_OTLP_ENDPOINT: string } {
    return { OTEL_EXPORTER_OTLP_ENDPOINT: this.url };
  }

  /** The one span of that name. */
  named(name: string): SentSpan {
    const found = this.spans.filter((span) => span.name === name);
    if (found.length !== 1 || !found[0])
      expect.fail(`${found.length} spans are named ${name}, of: ${this.names.join(", ")}`);
    return found[0];
  }

  get names(): string[] {
    return this.spans.map(({ name }) => name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #keep(body: Buffer): void {
    this.bytes = Buffer.concat([this.bytes, body]);
    this.spans.push(...sentSpans(body));
  }
}
