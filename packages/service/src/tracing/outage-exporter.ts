import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace";
import type { TracingOptions } from "./open-tracing.ts";

/** Reports an outage once, not once per batch, and its end once. */
export class OutageExporter implements SpanExporter {
  readonly #inner: SpanExporter;
  readonly #onOutage: TracingOptions["onOutage"];
  #lost = false;

  constructor(inner: SpanExporter, onOutage: TracingOptions["onOutage"]) {
    this.#inner = inner;
    this.#onOutage = onOutage;
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.#inner.export(spans, (result) => {
      this.#note(result);
      done(result);
    });
  }

  shutdown(): Promise<void> {
    return this.#inner.shutdown();
  }

  async forceFlush(): Promise<void> {
    await this.#inner.forceFlush?.();
  }

  #note({ code, error }: ExportResult): void {
    const failed = code !== ExportResultCode.SUCCESS;
    if (failed === this.#lost) return;
    this.#lost = failed;
    this.#onOutage(failed ? { state: "lost", detail: detailOf(error) } : { state: "back", detail: "" });
  }
}

/** An HTTP status, or a network error's code and message. Never the collector's answer, which may repeat our headers. */
function detailOf(error: (Error & { code?: string | number }) | undefined): string {
  const words = [error?.code, error?.message].filter((word) => word !== undefined && word !== "");
  return words.length > 0 ? words.join(" ").slice(0, 200) : "it gave no reason";
}
