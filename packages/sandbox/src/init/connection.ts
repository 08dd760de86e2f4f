import { randomBytes } from "node:crypto";
import {
  encodeFrame,
  FencedTag,
  type Frame,
  FrameDecoder,
  FrameError,
  FrameType,
  HelloAckTag,
  HelloTag,
  KillTag,
  LinkedTag,
  maxChannels,
  maxFrameBytes,
  maxPayloadBytes,
  maxRequestBytes,
  PingTag,
  Records,
  RecordWriter,
} from "@berth/init";
import { Fault } from "@berth/protocol";
import type { LinkCommand, LinkEnd } from "../link.ts";
import type { ByteStream } from "./byte-stream.ts";
import type { Channel, ChannelWire } from "./channel.ts";
import { ExecChannel } from "./exec-channel.ts";
import { type FileAnswers, FileChannel } from "./file-channel.ts";
import type { LinkListener } from "./link-listener.ts";

export interface ConnectionOptions {
  readonly sandboxKey: string;
  readonly epoch: number;
  readonly leaseMs: number;
  readonly leaseLeftMs?: (() => number) | undefined;
  /** For HELLO_ACK. */
  readonly deadlineMs: number;
  /** The container ran before: flush what a dead worker may have left half sent. */
  readonly resync: boolean;
  /** Where init may connect, so that a socket carries the frames. Without it the stream that was given carries them all. */
  readonly listener?: LinkListener | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Hello {
  readonly watchdogFired: boolean;
  /** Channels of an earlier holder that still run. */
  readonly running: readonly number[];
  readonly uid: number;
  /** Whether init's seccomp filter confines everything in the sandbox. */
  readonly filtered: boolean;
  /** It can connect to a socket of the worker's. */
  readonly links: boolean;
}

export type Carrier = "unix" | "stdio";

/** In a lease. Each carries what is left of it, so init learns of a renewal within one of these. */
const pings = 6;
/** An init that knows LINK answers at once, connected or not; this is for one that hangs. */
const linkTryMs = 1_000;
/** A socket ends at once with its container, and what the engine says about that comes a little later. */
const lastWordsMs = 1_000;
/** Missed answers after which init is taken for hung. Counted, so that a pause of the worker itself does not accuse init. */
const missedPingsAllowed = pings;

/**
 * The worker's end of the conversation with one init.
 *
 *   opening ──HELLO_ACK, LINKED or not──▶ open ──a stream ends, protocol error, fenced, hung, close()──▶ closed
 *
 * The hello goes over the attached stdio. Then init connects to a socket of the worker's, which carries everything else; where
 * that cannot be, stdio does. stdio stays attached, and the end of either stream closes the connection.
 *
 * Every byte from the other side is taken as hostile: frames are bounded, output is bounded by credit, and anything
 * out of order closes the connection with `protocol`. Closing ends every channel; it does not end what runs inside.
 */
export class InitConnection implements ChannelWire {
  readonly closed: Promise<LinkEnd>;
  readonly #settleClosed: (end: LinkEnd) => void;
  readonly #stdio: ByteStream;
  #link: ByteStream | undefined;
  #linkAsked = false;
  readonly #linked = Promise.withResolvers<void>();
  readonly #options: ConnectionOptions;
  readonly #nonce = randomBytes(16);
  readonly #hello = Promise.withResolvers<Hello>();
  readonly #channels = new Map<number, Channel>();
  readonly #leftovers = new Map<number, () => void>();
  #greeted = false;
  #nextChannel = 1;
  #isClosed = false;
  #drain: { promise: Promise<void>; resolve: () => void } | undefined;
  #pinger: NodeJS.Timeout | undefined;
  #pingsUnanswered = 0;
  #fedAtMs = 0;

  constructor(stream: ByteStream, options: ConnectionOptions) {
    const { promise, resolve } = Promise.withResolvers<LinkEnd>();
    this.closed = promise;
    this.#settleClosed = resolve;
    this.#stdio = stream;
    this.#options = options;
    // Nobody may be awaiting them when the connection breaks.
    this.#hello.promise.catch(() => {});
    this.#linked.promise.catch(() => {});
    const decoder = new FrameDecoder(this.#nonce);
    stream.listen({
      onBytes: (bytes) => this.#onBytes(decoder, bytes, "stdio"),
      onDrain: () => this.#releaseDrain("stdio"),
      onEnd: (detail) => this.#close({ why: "stream-ended", detail }),
    });
  }

  /** What carries commands and files. */
  get carrier(): Carrier {
    return this.#link === undefined ? "stdio" : "unix";
  }

  /** Says hello and waits for the answer. Once. Refuses an init whose seccomp filter is not on. */
  async open(): Promise<Hello> {
    const { resync, deadlineMs, signal, listener } = this.#options;
    if (resync) this.#stdio.send(Buffer.alloc(maxFrameBytes));
    this.send(
      FrameType.hello,
      0,
      new RecordWriter().add(HelloTag.nonce, this.#nonce).add(HelloTag.leaseMs, this.#leftMs).finish(),
    );
    this.#fedAtMs = performance.now();
    const timer = setTimeout(() => this.#close({ why: "unresponsive", waitedMs: deadlineMs }), deadlineMs);
    const onAbort = () => this.close();
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) this.close();
    try {
      const hello = await this.#hello.promise;
      if (!hello.filtered) {
        this.close();
        const detail = "init runs without its seccomp filter: the kernel or the runtime did not accept it";
        throw new Fault("sandbox-start-failed", { sandboxKey: this.#options.sandboxKey, detail });
      }
      if (listener && hello.links) await this.#joinLink(listener);
      this.#pinger = setInterval(() => this.#ping(), this.#pingMs);
      return hello;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  async #joinLink(listener: LinkListener): Promise<void> {
    this.#linkAsked = true;
    this.send(FrameType.link, 0, listener.offer);
    void this.closed.then(() => listener.giveUp());
    const timer = setTimeout(() => listener.giveUp(), linkTryMs);
    const link = await listener.accepted;
    clearTimeout(timer);
    if (!link) return;
    const decoder = new FrameDecoder();
    link.listen({
      onBytes: (bytes) => this.#onBytes(decoder, bytes, "unix"),
      onDrain: () => this.#releaseDrain("unix"),
      onEnd: (detail) => {
        if (!this.#isClosed) setTimeout(() => this.#close({ why: "stream-ended", detail }), lastWordsMs);
      },
    });
    this.#link = link;
    this.#releaseDrain("unix");
    this.send(FrameType.linkProof, 0, listener.proof);
    // Until then init may be writing to stdout what it had for it.
    await this.#linked.promise;
  }

  exec(command: LinkCommand): ExecChannel {
    const channel = new ExecChannel(this.#takeId(), this, command);
    // A process that was stopped may come here late. Init would refuse the command, or start it and kill it at once.
    if ((this.#options.leaseLeftMs?.() ?? 1) <= 0) {
      channel.refuse("lease-over", "the worker's lease was over before the command was sent");
      return channel;
    }
    this.#request(channel, FrameType.exec, channel.request());
    channel.begin();
    return channel;
  }

  file(payload: Buffer, answers: FileAnswers): FileChannel {
    const channel = new FileChannel(this.#takeId(), this, answers);
    this.#request(channel, FrameType.file, payload);
    return channel;
  }

  stats(): FileChannel {
    const channel = new FileChannel(this.#takeId(), this, {});
    this.#request(channel, FrameType.stats, Buffer.alloc(0));
    return channel;
  }

  /** Ends what an earlier holder left running. Throws if init does not say in time that all of it is gone. */
  async killLeftovers(ids: readonly number[]): Promise<void> {
    const { deadlineMs } = this.#options;
    const timer = setTimeout(() => this.giveUp(deadlineMs), deadlineMs);
    const gone = ids.map(
      (id) =>
        new Promise<void>((resolve) => {
          this.#leftovers.set(id, resolve);
          this.send(FrameType.kill, id, new RecordWriter().add(KillTag.graceMs, 0).finish());
        }),
    );
    const end = await Promise.race([Promise.all(gone), this.closed]);
    clearTimeout(timer);
    if (!Array.isArray(end)) throw endFault(end, this.#options);
  }

  /** It keeps the connection but does not do what it must. */
  giveUp(waitedMs: number): void {
    this.#close({ why: "unresponsive", waitedMs });
  }

  close(): void {
    this.#close({ why: "closed" });
  }

  send(type: number, channel: number, payload: Uint8Array): void {
    if (this.#isClosed) return;
    const more = (this.#link ?? this.#stdio).send(encodeFrame(type, channel, this.#options.epoch, payload));
    if (!more) this.#drain ??= Promise.withResolvers<void>();
  }

  async writable(): Promise<void> {
    await this.#drain?.promise;
  }

  #takeId(): number {
    // Ids that an orphan of an earlier epoch may still use are skipped.
    do this.#nextChannel = this.#nextChannel >= 0x7fffffff ? 1 : this.#nextChannel + 1;
    while (this.#channels.has(this.#nextChannel) || this.#leftovers.has(this.#nextChannel));
    return this.#nextChannel;
  }

  #request(channel: Channel, type: number, payload: Buffer): void {
    if (payload.length > maxRequestBytes) {
      throw new RangeError(`a request of ${payload.length} bytes is over ${maxRequestBytes}`);
    }
    // A worker whose timers are late is heard of before what it asks for, or init would refuse that.
    if (performance.now() - this.#fedAtMs > this.#pingMs) this.#ping();
    if (this.#isClosed) {
      void this.closed.then((end) => channel.onClosed(end));
      return;
    }
    this.#channels.set(channel.id, channel);
    let offset = 0;
    for (; payload.length - offset > maxPayloadBytes; offset += maxPayloadBytes) {
      this.send(FrameType.part, channel.id, payload.subarray(offset, offset + maxPayloadBytes));
    }
    this.send(type, channel.id, payload.subarray(offset));
  }

  #onBytes(decoder: FrameDecoder, bytes: Buffer, from: Carrier): void {
    if (this.#isClosed) return;
    try {
      decoder.push(bytes, (frame) => {
        if (!this.#isClosed) this.#onFrame(frame, from);
      });
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#close({ why: "protocol", detail: error.message });
    }
  }

  #onFrame(frame: Frame, from: Carrier): void {
    if (frame.epoch < this.#options.epoch) return;
    if (frame.epoch > this.#options.epoch) {
      this.#close({ why: "fenced", highestEpoch: frame.epoch });
      return;
    }
    if (frame.channel === 0) {
      this.#onConnectionFrame(frame, from);
      return;
    }
    const channel = this.#channels.get(frame.channel);
    if (channel) {
      if (channel.onFrame(frame)) this.#channels.delete(frame.channel);
      return;
    }
    const leftover = this.#leftovers.get(frame.channel);
    if (!leftover) throw new FrameError(`a frame on channel ${frame.channel}, which is not open`);
    if (frame.type === FrameType.exit || frame.type === FrameType.fail || frame.type === FrameType.done) {
      this.#leftovers.delete(frame.channel);
      leftover();
    }
  }

  #onConnectionFrame(frame: Frame, from: Carrier): void {
    switch (frame.type) {
      case FrameType.helloAck:
        this.#onHello(new Records(frame.payload));
        return;
      case FrameType.pong:
        if (this.#pingsUnanswered === 0) throw new FrameError("an answer to no ping");
        this.#pingsUnanswered--;
        return;
      case FrameType.fenced:
        this.#close({
          why: "fenced",
          highestEpoch: new Records(frame.payload).requiredNumber(FencedTag.epoch),
        });
        return;
      case FrameType.linked:
        this.#onLinked(new Records(frame.payload), from);
        return;
      default:
        throw new FrameError(`type ${frame.type} on the connection's own channel`);
    }
  }

  /** Over the link: it carries from now on. Over stdio: there is none, and the number says why. */
  #onLinked(records: Records, from: Carrier): void {
    if (!this.#linkAsked) throw new FrameError("an answer to no LINK");
    this.#linkAsked = false;
    if (from === "unix") this.#linked.resolve();
    else if (this.#link !== undefined) throw new FrameError("a link that is refused and carries");
    else if (records.requiredNumber(LinkedTag.errno) > 0) this.#options.listener?.giveUp();
  }

  #onHello(records: Records): void {
    if (this.#greeted || !records.bytes(HelloAckTag.nonce)?.equals(this.#nonce)) {
      throw new FrameError("a greeting nobody asked for");
    }
    this.#greeted = true;
    const claimed = records.all(HelloAckTag.running);
    if (claimed.length > maxChannels) throw new FrameError(`${claimed.length} running channels`);
    const running = claimed.map((value) => {
      if (value.length !== 8) throw new FrameError("a running channel that is not two numbers");
      return value.readUInt32BE(0);
    });
    for (const id of running) this.#leftovers.set(id, () => {});
    this.#hello.resolve({
      watchdogFired: records.number(HelloAckTag.watchdogFired) === 1,
      running,
      uid: records.number(HelloAckTag.uid) ?? 0,
      filtered: records.number(HelloAckTag.filtered) === 1,
      links: records.number(HelloAckTag.links) === 1,
    });
  }

  #ping(): void {
    if (this.#isClosed) return;
    if (this.#pingsUnanswered >= missedPingsAllowed) {
      this.#close({ why: "unresponsive", waitedMs: this.#options.leaseMs });
      return;
    }
    this.#pingsUnanswered++;
    this.#fedAtMs = performance.now();
    this.send(FrameType.ping, 0, new RecordWriter().add(PingTag.leftMs, this.#leftMs).finish());
  }

  get #pingMs(): number {
    return Math.max(50, Math.floor(this.#options.leaseMs / pings));
  }

  /** At least 1: a lease of 0 is none. */
  get #leftMs(): number {
    const { leaseMs, leaseLeftMs = () => leaseMs } = this.#options;
    return Math.max(1, Math.floor(leaseLeftMs()));
  }

  #releaseDrain(carrier: Carrier): void {
    if (carrier !== this.carrier) return;
    this.#drain?.resolve();
    this.#drain = undefined;
  }

  #close(end: LinkEnd): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#pinger);
    this.#releaseDrain(this.carrier);
    this.#hello.reject(endFault(end, this.#options));
    this.#linked.reject(endFault(end, this.#options));
    this.#settleClosed(end);
    for (const channel of this.#channels.values()) channel.onClosed(end);
    this.#channels.clear();
    for (const gone of this.#leftovers.values()) gone();
    this.#link?.destroy();
    this.#stdio.destroy();
  }
}

/** What a caller is told who needed the connection. */
export function endFault(end: LinkEnd, { sandboxKey, epoch }: { sandboxKey: string; epoch: number }): Fault {
  switch (end.why) {
    case "fenced":
      return new Fault("fenced", { sandboxKey, epoch, highestEpoch: end.highestEpoch });
    case "unresponsive":
      return new Fault("init-unresponsive", { sandboxKey, waitedMs: end.waitedMs });
    case "protocol":
      return new Fault("init-protocol", { detail: end.detail });
    case "stream-ended":
    case "recycled":
      return new Fault("sandbox-start-failed", { sandboxKey, detail: end.detail });
    case "closed":
      return new Fault("sandbox-stopped", { sandboxKey });
  }
}
