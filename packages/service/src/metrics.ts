type Labels = Readonly<Record<string, string | number>>;
type Kind = "counter" | "gauge" | "histogram";

/** Series per metric; a label that grows without bound must not take the process with it. */
const maxSeries = 2_000;

interface Family {
  readonly kind: Kind;
  readonly help: string;
  readonly lines: () => string[];
}

/** Counts and times of one process, in Prometheus' text format. */
export class Metrics {
  readonly #families = new Map<string, Family>();

  counter(name: string, help: string): Counter {
    const counter = new Counter(name);
    this.#families.set(name, { kind: "counter", help, lines: () => counter.lines() });
    return counter;
  }

  /** Asked when somebody reads; a metric without a value is left out. */
  gauge(name: string, help: string, read: () => number | readonly Sample[] | undefined): void {
    const lines = () => {
      const value = read();
      if (value === undefined) return [];
      const samples = typeof value === "number" ? [{ labels: {}, value }] : value;
      return samples.map((sample) => line(name, sample.labels, sample.value));
    };
    this.#families.set(name, { kind: "gauge", help, lines });
  }

  histogram(name: string, help: string, bounds: readonly number[]): Histogram {
    const histogram = new Histogram(name, bounds);
    this.#families.set(name, { kind: "histogram", help, lines: () => histogram.lines() });
    return histogram;
  }

  text(): string {
    const parts: string[] = [];
    for (const [name, { kind, help, lines }] of this.#families) {
      parts.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`, ...lines());
    }
    return `${parts.join("\n")}\n`;
  }
}

export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

export class Counter {
  readonly #name: string;
  readonly #series = new Map<string, number>();

  constructor(name: string) {
    this.#name = name;
  }

  add(labels: Labels = {}, by = 1): void {
    const key = labelText(labels);
    const before = this.#series.get(key);
    if (before === undefined && this.#series.size >= maxSeries) return;
    this.#series.set(key, (before ?? 0) + by);
  }

  lines(): string[] {
    return [...this.#series].map(([labels, value]) => `${this.#name}${labels} ${value}`);
  }
}

export class Histogram {
  readonly #name: string;
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, { labels: Labels; counts: number[]; sum: number; count: number }>();

  constructor(name: string, bounds: readonly number[]) {
    this.#name = name;
    this.#bounds = bounds;
  }

  observe(labels: Labels, value: number): void {
    const key = labelText(labels);
    let series = this.#series.get(key);
    if (!series) {
      if (this.#series.size >= maxSeries) return;
      series = { labels, counts: this.#bounds.map(() => 0), sum: 0, count: 0 };
      this.#series.set(key, series);
    }
    series.sum += value;
    series.count++;
    for (const [index, bound] of this.#bounds.entries()) {
      if (value <= bound) series.counts[index] = (series.counts[index] ?? 0) + 1;
    }
  }

  lines(): string[] {
    return [...this.#series.values()].flatMap(({ labels, counts, sum, count }) => [
      ...this.#bounds.map((bound, index) =>
        line(`${this.#name}_bucket`, { ...labels, le: bound }, counts[index] ?? 0),
      ),
      line(`${this.#name}_bucket`, { ...labels, le: "+Inf" }, count),
      line(`${this.#name}_sum`, labels, sum),
      line(`${this.#name}_count`, labels, count),
    ]);
  }
}

function line(name: string, labels: Labels, value: number): string {
  return `${name}${labelText(labels)} ${value}`;
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(String(value))}"`);
  return pairs.length > 0 ? `{${pairs.join(",")}}` : "";
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
