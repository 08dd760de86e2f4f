import type { Init } from "./init-process.ts";
import { type Frame, items, Records, records, Type } from "./wire.ts";

export interface Exit {
  kind: "exited" | "signalled";
  value: number;
  reason: number;
  oomKills: number;
  wallMicros: number;
  cpuMicros: number;
  maxRssKib: number;
  background: number;
  held: number;
  stuck: number;
}

export interface Fail {
  code: string;
  message: string;
  errno: number | undefined;
}

/** One channel, as the worker sees it. Anything after its last frame throws. */
export class Channel {
  readonly number: number;
  readonly frames: Frame[] = [];
  last: Frame | undefined;
  #init: Init;

  constructor(init: Init, number: number) {
    this.#init = init;
    this.number = number;
  }

  take(frame: Frame): void {
    if (this.last !== undefined)
      throw new Error(`frame ${frame.type} after the last on channel ${this.number}`);
    this.frames.push(frame);
    if (frame.type === Type.EXIT || frame.type === Type.FAIL || frame.type === Type.DONE) this.last = frame;
  }

  #bytesOf(type: number): Buffer {
    return Buffer.concat(this.frames.filter((frame) => frame.type === type).map((frame) => frame.payload));
  }

  get stdout(): string {
    return this.#bytesOf(Type.STDOUT).toString("latin1");
  }

  get stderr(): string {
    return this.#bytesOf(Type.STDERR).toString("latin1");
  }

  get data(): Buffer {
    return this.#bytesOf(Type.DATA);
  }

  get outputBytes(): number {
    return this.#bytesOf(Type.STDOUT).length + this.#bytesOf(Type.STDERR).length;
  }

  get items(): Records[] {
    return this.frames.filter((frame) => frame.type === Type.ITEMS).flatMap((frame) => items(frame.payload));
  }

  get stdinCredit(): number {
    return this.frames
      .filter((frame) => frame.type === Type.STDIN_CREDIT)
      .reduce((sum, frame) => sum + (new Records(frame.payload).number(1) ?? 0), 0);
  }

  stdin(bytes: string | Buffer): void {
    const all = Buffer.from(bytes as string);
    for (let at = 0; at < all.length; at += 65_536)
      this.#init.send(Type.STDIN, this.number, all.subarray(at, at + 65_536));
  }

  stdinEof(): void {
    this.#init.send(Type.STDIN_EOF, this.number);
  }

  credit(bytes: number): void {
    this.#init.send(Type.CREDIT, this.number, records([1, bytes]));
  }

  kill(graceMs = 0): void {
    this.#init.send(Type.KILL, this.number, records([1, graceMs]));
  }

  async started(): Promise<number> {
    await this.#init.until(() => this.frames.length > 0, "STARTED");
    const first = this.frames[0] as Frame;
    if (first.type !== Type.STARTED) throw new Error(`frame ${first.type} before STARTED`);
    return new Records(first.payload).number(1) ?? 0;
  }

  async output(wanted: string, timeoutMs?: number): Promise<void> {
    await this.#init.until(
      () => this.stdout.includes(wanted),
      `output ${wanted}, have ${this.stdout}`,
      timeoutMs,
    );
  }

  async end(timeoutMs?: number): Promise<Frame> {
    await this.#init.until(() => this.last !== undefined, `the end of channel ${this.number}`, timeoutMs);
    return this.last as Frame;
  }

  async exit(timeoutMs?: number): Promise<Exit> {
    const last = await this.end(timeoutMs);
    if (last.type !== Type.EXIT)
      throw new Error(`no EXIT but ${last.type}: ${last.payload.toString("latin1")}`);
    const found = new Records(last.payload);
    const number = (tag: number) => {
      const value = found.number(tag);
      if (value === undefined) throw new Error(`EXIT without ${tag}`);
      return value;
    };
    return {
      kind: number(1) === 1 ? "exited" : "signalled",
      value: number(2),
      reason: number(3),
      oomKills: number(4),
      wallMicros: number(5),
      cpuMicros: number(6),
      maxRssKib: number(7),
      background: number(8),
      held: number(9),
      stuck: number(10),
    };
  }

  async done(timeoutMs?: number): Promise<Records> {
    const last = await this.end(timeoutMs);
    if (last.type !== Type.DONE)
      throw new Error(`no DONE but ${last.type}: ${last.payload.toString("latin1")}`);
    return new Records(last.payload);
  }

  async fail(timeoutMs?: number): Promise<Fail> {
    const last = await this.end(timeoutMs);
    if (last.type !== Type.FAIL)
      throw new Error(`no FAIL but ${last.type}: ${last.payload.toString("latin1")}`);
    const found = new Records(last.payload);
    return { code: found.text(1) ?? "", message: found.text(2) ?? "", errno: found.number(3) };
  }

  async failCode(timeoutMs?: number): Promise<string> {
    return (await this.fail(timeoutMs)).code;
  }
}
