import { createHash } from "node:crypto";
import type { Channel } from "./channel.ts";
import type { Init } from "./init-process.ts";
import type { Records, Value } from "./wire.ts";

export const Op = {
  read: 1,
  write: 2,
  stat: 3,
  list: 4,
  remove: 5,
  move: 6,
  mkdir: 7,
  glob: 8,
  grep: 9,
  usage: 10,
  unpack: 11,
  pack: 12,
} as const;

type Pairs = [number, Value | undefined][];

export const sha256 = (bytes: string | Buffer): Buffer => createHash("sha256").update(bytes).digest();

/** Sends the bytes as STDIN in the window's pieces, then the end. */
export function write(init: Init, path: string, content: string | Buffer, ...more: Pairs): Channel {
  const bytes = Buffer.from(content as string);
  const size: Pairs = more.some(([tag]) => tag === 8) ? [] : [[8, bytes.length]];
  const channel = init.file([1, Op.write], [2, path], ...size, ...more);
  if (bytes.length > 0) channel.stdin(bytes);
  channel.stdinEof();
  return channel;
}

export const read = (init: Init, path: string, ...more: Pairs): Channel =>
  init.file([1, Op.read], [2, path], ...more);

export async function readText(init: Init, path: string): Promise<string> {
  const channel = read(init, path);
  await channel.done();
  return channel.data.toString();
}

export interface Listed {
  path: string;
  type: string;
  size: number;
  mode: number;
  target: string | undefined;
}

export function listed(records: Records[]): Listed[] {
  return records
    .map((item) => ({
      path: item.text(1) ?? "",
      type: item.text(2) ?? "",
      size: item.number(3) ?? -1,
      mode: item.number(4) ?? -1,
      target: item.text(6),
    }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

export const paths = (channel: Channel): string[] => listed(channel.items).map((item) => item.path);
