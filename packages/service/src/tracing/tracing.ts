/** W3C trace context, as it travels in headers and in jobs. */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string | undefined;
}

export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanStart {
  readonly name: string;
  readonly kind: "server" | "producer" | "consumer" | "internal";
  /** Absent or invalid: the span starts a new trace. */
  readonly parent?: TraceContext | undefined;
  readonly attributes?: SpanAttributes;
}

export interface SpanEnd {
  readonly attributes?: SpanAttributes;
  /** A failure of our own machinery. A caller's or a tenant's mistake is not an error here. */
  readonly error?: string | undefined;
}

export interface OpenSpan {
  /** The context for child spans in other processes. It carries the sampling decision. */
  readonly context: TraceContext;
  /** Ends the span. Only the first call counts. */
  end(end?: SpanEnd): void;
}

/** A finished span with its children. Times are epoch milliseconds. */
export interface PastSpan extends Omit<SpanStart, "parent">, SpanEnd {
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes?: SpanAttributes;
  readonly inside?: readonly PastSpan[];
}

/** Makes spans and exports them in the background. Never waits for a collector or throws because of one. */
export interface Tracing {
  begin(start: SpanStart): OpenSpan;
  record(span: PastSpan, parent: TraceContext | undefined): void;
  /** Exports the rest, for at most two seconds. */
  stop(): Promise<void>;
}
