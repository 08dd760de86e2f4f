import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export type { Counter, Histogram } from "prom-client";

export interface Sample<Label extends string> {
  readonly labels: Readonly<Record<Label, string>>;
  readonly value: number;
}

/** The metrics of one process. Every combination of label values stays in memory, so give labels few values. */
export class Metrics {
  static readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  readonly #registry = new Registry();
  readonly #registers = [this.#registry];

  /** Adds `berth_build_info`, and prom-client's metrics of the process, the event loop and the garbage collector. */
  describeProcess(app: string, version: string): void {
    const help = "Always 1; the labels are the program and its version.";
    this.labelledGauge("berth_build_info", help, ["app", "version"], () => [
      { labels: { app, version }, value: 1 },
    ]);
    collectDefaultMetrics({ register: this.#registry });
  }

  counter<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: this.#registers });
  }

  /** Read at each scrape. Undefined yields no sample. */
  gauge(name: string, help: string, read: () => number | undefined | Promise<number | undefined>): void {
    new Gauge({
      name,
      help,
      registers: this.#registers,
      async collect() {
        const value = await read();
        if (value === undefined) this.remove();
        else this.set(value);
      },
    });
  }

  /** Read at each scrape. */
  labelledGauge<Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    read: () => readonly Sample<Label>[],
  ): void {
    new Gauge({
      name,
      help,
      labelNames,
      registers: this.#registers,
      collect() {
        this.reset();
        for (const { labels, value } of read()) this.set(labels, value);
      },
    });
  }

  histogram<Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    bounds: readonly number[],
  ): Histogram<Label> {
    return new Histogram({ name, help, labelNames, buckets: [...bounds], registers: this.#registers });
  }

  /** In Prometheus' text format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }
}
