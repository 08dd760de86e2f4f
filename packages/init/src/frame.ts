/** The frame of docs/init-protocol.md. */
export const magic = 0xbe27;
export const version = 1;
export const headerBytes = 20;
export const trailerBytes = 4;
export const maxPayloadBytes = 65_536;
export const maxFrameBytes = headerBytes + maxPayloadBytes + trailerBytes;
export const trailerMark = 0xe0d50000;

export const FrameType = {
  hello: 0x01,
  ping: 0x02,
  part: 0x03,
  exec: 0x04,
  stdin: 0x05,
  stdinEof: 0x06,
  credit: 0x07,
  kill: 0x08,
  file: 0x09,
  stats: 0x0a,
  shutdown: 0x0b,
  link: 0x0c,
  linkProof: 0x0d,
  park: 0x0e,
  forward: 0x0f,
  helloAck: 0x41,
  pong: 0x42,
  started: 0x43,
  stdout: 0x44,
  stderr: 0x45,
  exit: 0x46,
  fail: 0x47,
  stdinCredit: 0x48,
  data: 0x49,
  items: 0x4a,
  done: 0x4b,
  fenced: 0x4c,
  linked: 0x4d,
  forwarded: 0x4e,
} as const;
export type FrameType = (typeof FrameType)[keyof typeof FrameType];

export interface Frame {
  readonly type: number;
  readonly channel: number;
  readonly epoch: number;
  /** Of a decoded frame, a view into what was received: overwritten once the frame's receiver returns. */
  readonly payload: Buffer;
}

export function trailerOf(length: number): number {
  return (trailerMark ^ length) >>> 0;
}

/** One buffer for a frame, so that it reaches the stream in one write. */
export function encodeFrame(type: number, channel: number, epoch: number, payload: Uint8Array): Buffer {
  const length = payload.length;
  if (length > maxPayloadBytes)
    throw new RangeError(`a payload of ${length} bytes is over ${maxPayloadBytes}`);
  const frame = Buffer.allocUnsafe(headerBytes + length + trailerBytes);
  frame.writeUInt16BE(magic, 0);
  frame.writeUInt8(version, 2);
  frame.writeUInt8(type, 3);
  frame.writeUInt32BE(channel, 4);
  frame.writeBigUInt64BE(BigInt(epoch), 8);
  frame.writeUInt32BE(length, 16);
  frame.set(payload, headerBytes);
  frame.writeUInt32BE(trailerOf(length), headerBytes + length);
  return frame;
}
