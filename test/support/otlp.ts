/** A span as a collector is sent it. Times are nanoseconds since the epoch. */
export interface SentSpan {
  readonly name: string;
  readonly kind: "internal" | "server" | "client" | "producer" | "consumer" | "unspecified";
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first of its trace. */
  readonly parentId: string;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** The message of an error; undefined for all else. */
  readonly error: string | undefined;
  readonly resource: Readonly<Record<string, string | number | boolean>>;
}

type Field = readonly [number, bigint | Buffer];
const kinds = ["unspecified", "internal", "server", "client", "producer", "consumer"] as const;
const errorCode = 2n;

/** The spans of an ExportTraceServiceRequest, by the numbers of opentelemetry/proto/trace/v1/trace.proto. */
export function sentSpans(request: Buffer): SentSpan[] {
  return inner(request, 1).flatMap((resourceSpans) => {
    const resource = attributesOf(inner(resourceSpans, 1).flatMap((one) => inner(one, 1)));
    const scopes = inner(resourceSpans, 2);
    return scopes.flatMap((scope) => inner(scope, 2)).map((span) => spanOf(span, resource));
  });
}

function spanOf(span: Buffer, resource: SentSpan["resource"]): SentSpan {
  const hex = (field: number) => (inner(span, field)[0] ?? Buffer.alloc(0)).toString("hex");
  const number = (of: Buffer, field: number) => (find(of, field) ?? 0n) as bigint;
  const status = inner(span, 15)[0] ?? Buffer.alloc(0);
  return {
    name: inner(span, 5).join(""),
    kind: kinds[Number(number(span, 6))] ?? "unspecified",
    traceId: hex(1),
    spanId: hex(2),
    parentId: hex(4),
    startNs: number(span, 7),
    endNs: number(span, 8),
    attributes: attributesOf(inner(span, 9)),
    error: number(status, 3) === errorCode ? inner(status, 2).join("") : undefined,
    resource,
  };
}

function attributesOf(pairs: readonly Buffer[]): SentSpan["attributes"] {
  return Object.fromEntries(pairs.map((pair) => [inner(pair, 1).join(""), anyValue(inner(pair, 2)[0])]));
}

function anyValue(any: Buffer = Buffer.alloc(0)): string | number | boolean {
  const [field, value] = fieldsOf(any)[0] ?? [1, Buffer.alloc(0)];
  if (field === 2) return value === 1n;
  if (field === 3) return Number(value);
  if (field === 4) {
    const double = Buffer.alloc(8);
    double.writeBigUInt64LE(value as bigint);
    return double.readDoubleLE();
  }
  return String(value);
}

function inner(message: Buffer, field: number): Buffer[] {
  return fieldsOf(message).flatMap(([number, value]) =>
    number === field && Buffer.isBuffer(value) ? [value] : [],
  );
}

function find(message: Buffer, field: number): bigint | Buffer | undefined {
  return fieldsOf(message).find(([number]) => number === field)?.[1];
}

/** Protocol Buffers' own format: a number and a type before each value. */
function fieldsOf(message: Buffer): Field[] {
  const found: Field[] = [];
  let at = 0;
  const varint = (): bigint => {
    for (let value = 0n, shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const bytes = (length: number): Buffer => {
    at += length;
    return message.subarray(at - length, at);
  };
  while (at < message.length) {
    const tag = Number(varint());
    const type = tag & 7;
    if (type === 0) found.push([tag >> 3, varint()]);
    else if (type === 1) found.push([tag >> 3, bytes(8).readBigUInt64LE()]);
    else if (type === 2) found.push([tag >> 3, bytes(Number(varint()))]);
    else if (type === 5) found.push([tag >> 3, BigInt(bytes(4).readUInt32LE())]);
    else throw new Error(`type ${type} is in no OTLP message`);
  }
  return found;
}
