/** W3C trace context, as it travels in headers and in jobs. */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string | undefined;
}

export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanStart {
  readonly name: string;
  readonly kind: "server" | "producer" | "consumer" | "internal";
  /** Absent, or not a trace context: it begins a trace of its own. */
  readonly parent?: TraceContext | undefined;
  readonly attributes?: SpanAttributes;
}

export interface SpanEnd {
  readonly attributes?: SpanAttributes;
  /** A failure of our own machinery. A caller's or a tenant's mistake is no error here. */
  readonly error?: string | undefined;
}

export interface OpenSpan {
  /** What other processes continue from. It tells them if this trace is not kept. */
  readonly context: TraceContext;
  /** Ends the span. Only the first call counts. */
  end(end?: SpanEnd): void;
}

/** A span that is over, with those inside it. Times are epoch milliseconds. */
export interface PastSpan extends Omit<SpanStart, "parent">, SpanEnd {
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes?: SpanAttributes;
  readonly inside?: readonly PastSpan[];
}

/** Makes spans and sends them away in the background. Nothing here waits for a collector or throws because of one. */
export interface Tracing {
  begin(start: SpanStart): OpenSpan;
  record(span: PastSpan, parent: TraceContext | undefined): void;
  /** Sends what is left, for two seconds at most. */
  stop(): Promise<void>;
}
