import { createHash, randomBytes } from "node:crypto";
import { getSystemErrorMap } from "node:util";
import {
  encodeFrame,
  FencedTag,
  ForwardedTag,
  ForwardTag,
  type Frame,
  FrameError,
  FrameType,
  HelloAckTag,
  HelloTag,
  KillTag,
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
import { type Carrier, Carriers } from "./carriers.ts";
import type { Channel, ChannelWire } from "./channel.ts";
import { ExecChannel } from "./exec-channel.ts";
import { type FileAnswers, FileChannel } from "./file-channel.ts";
import type { LinkListener } from "./link-listener.ts";

export interface ConnectionOptions {
  readonly sandboxKey: string;
  /** The container waits for its sandbox, so the hello names none. init serves the first sandbox that a hello names, and no other. */
  readonly waits?: boolean | undefined;
  readonly epoch: number;
  readonly leaseMs: number;
  readonly leaseLeftMs?: (() => number) | undefined;
  /** For HELLO_ACK. */
  readonly deadlineMs: number;
  /** The container ran before: flush a frame that a dead worker may have left half sent. */
  readonly resync: boolean;
  /** Where init may connect, so that a socket carries the frames. Absent: the attached stream carries all of them. */
  readonly listener?: LinkListener | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Hello {
  readonly watchdogFired: boolean;
  /** Channels of an earlier holder that still run. */
  readonly running: readonly number[];
  /** Whether init's seccomp filter confines everything in the sandbox. */
  readonly filtered: boolean;
  /** init can connect to a socket of the worker. */
  readonly links: boolean;
  /** The number of its mount namespace, of a container that waits for its sandbox. */
  readonly mountNamespace: number | undefined;
  /** An errno: why init does not serve the sandbox that the hello named. */
  readonly refused: number;
}

/** In each lease. A ping carries what is left of the lease, so init learns of a renewal with the next one. */
const pingsPerLease = 6;
/** Deadline of FORWARD. init answers at once, but a loaded machine may be slow. */
const forwardTryMs = 5_000;
/** init counts as hung after so many unanswered pings. Not after a time: then a pause of the worker would count against init. */
const missedPingsAllowed = pingsPerLease;

/**
 * The worker's end of the conversation with one init.
 *
 *   opening ──HELLO_ACK, LINKED or not──▶ open ──a stream ends, protocol error, fenced, hung, close()──▶ closed
 *
 * The hello goes over the attached stdio. `Carriers` decides what carries the other frames.
 *
 * Every byte from init is treated as hostile: frames are bounded, output is bounded by credit, and a frame that the state does not
 * allow closes the connection with `protocol`. Closing ends every channel. Processes inside go on.
 */
export class InitConnection implements ChannelWire {
  readonly closed: Promise<LinkEnd>;
  readonly #settleClosed: (end: LinkEnd) => void;
  readonly #stdio: ByteStream;
  readonly #carriers: Carriers;
  #forwarded: PromiseWithResolvers<number> | undefined;
  readonly #options: ConnectionOptions;
  readonly #nonce = randomBytes(16);
  readonly #hello = Promise.withResolvers<Hello>();
  readonly #channels = new Map<number, Channel>();
  readonly #leftovers = new Map<number, () => void>();
  #greeted = false;
  #nextChannel = 1;
  #isClosed = false;
  #isReleased = false;
  #pinger: NodeJS.Timeout | undefined;
  #pingsUnanswered = 0;
  #pingedAtMs = 0;

  constructor(stream: ByteStream, options: ConnectionOptions) {
    const { promise, resolve } = Promise.withResolvers<LinkEnd>();
    this.closed = promise;
    this.#settleClosed = resolve;
    this.#stdio = stream;
    this.#options = options;
    // It may not be awaited yet when the connection breaks.
    this.#hello.promise.catch(() => {});
    this.#carriers = new Carriers(stream, this.#nonce, {
      onFrame: (frame, from) => this.#onFrame(frame, from),
      onEnd: (end) => this.#close(end),
    });
  }

  /** The transport of commands and files: the link or stdio. */
  get carrier(): Carrier {
    return this.#carriers.carrier;
  }

  /** Sends HELLO and waits for the answer. Call once. Refuses an init whose seccomp filter is not on. */
  async open(): Promise<Hello> {
    const { resync, deadlineMs, signal, listener } = this.#options;
    if (resync) this.#carriers.sendRaw(Buffer.alloc(maxFrameBytes));
    this.send(FrameType.hello, 0, this.#helloRecords());
    const send = (type: number, payload: Uint8Array) => this.send(type, 0, payload);
    if (listener) this.#carriers.ask(listener, send);
    this.#pingedAtMs = performance.now();
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
      if (hello.refused !== 0) {
        this.close();
        throw new Fault("sandbox-start-failed", {
          sandboxKey: this.#options.sandboxKey,
          detail: refusal(hello.refused),
        });
      }
      if (listener && hello.links) await this.#carriers.join(listener, send);
      if (this.#isClosed) throw endFault(await this.closed, this.#options);
      this.#pinger = setInterval(() => this.#ping(), this.#pingMs);
      return hello;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  #helloRecords(): Buffer {
    const records = new RecordWriter().add(HelloTag.nonce, this.#nonce).add(HelloTag.leaseMs, this.#leftMs);
    const { sandboxKey, waits } = this.#options;
    if (waits === true) return records.finish();
    return records.add(HelloTag.key, createHash("sha256").update(sandboxKey).digest()).finish();
  }

  /**
   * Has init forward connections to 127.0.0.1:`port` in the sandbox to the worker's socket in the link directory. Returns an errno, 0 for
   * success; undefined when init does not answer, as one that does not know FORWARD.
   */
  async forward(port: number): Promise<number | undefined> {
    this.#forwarded ??= Promise.withResolvers<number>();
    const { promise } = this.#forwarded;
    this.send(FrameType.forward, 0, new RecordWriter().add(ForwardTag.port, port).finish());
    const late = Promise.withResolvers<undefined>();
    const timer = setTimeout(late.resolve, forwardTryMs, undefined);
    try {
      const ended = this.closed.then((end) => {
        throw endFault(end, this.#options);
      });
      return await Promise.race([promise, late.promise, ended]);
    } finally {
      clearTimeout(timer);
    }
  }

  exec(command: LinkCommand): ExecChannel {
    const channel = new ExecChannel(this.#takeId(), this, command);
    // A worker that was paused may come here late. init would refuse the command, or start it and kill it at once.
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

  /** Has init end everything, for the next holder. No other request may follow. */
  park(): FileChannel {
    // The next holder uses the same stream, so nothing may follow this frame.
    clearInterval(this.#pinger);
    const channel = new FileChannel(this.#takeId(), this, {});
    this.#request(channel, FrameType.park, Buffer.alloc(0));
    return channel;
  }

  /** Ends the commands that an earlier holder left running. Throws if init does not confirm in time that all are gone. */
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

  /** Closes the connection to an init that did not do in time what it must. */
  giveUp(waitedMs: number): void {
    this.#close({ why: "unresponsive", waitedMs });
  }

  /** Closes the connection after an answer whose frames are valid, but which no honest init sends. */
  refuseAnswer(detail: string): Fault {
    this.#close({ why: "protocol", detail });
    return new Fault("init-protocol", { detail });
  }

  close(): void {
    this.#close({ why: "closed" });
  }

  /** Like `close`, but the attached stream stays open for its next listener. Undefined: it has ended. */
  release(): ByteStream | undefined {
    if (this.#isClosed) return undefined;
    this.#isReleased = true;
    this.close();
    return this.#stdio;
  }

  send(type: number, channel: number, payload: Uint8Array): void {
    if (this.#isClosed) return;
    this.#carriers.send(encodeFrame(type, channel, this.#options.epoch, payload));
  }

  writable(): Promise<void> {
    return this.#carriers.writable();
  }

  #takeId(): number {
    // Skips ids that commands of an earlier epoch may still use.
    do this.#nextChannel = this.#nextChannel >= 0x7fffffff ? 1 : this.#nextChannel + 1;
    while (this.#channels.has(this.#nextChannel) || this.#leftovers.has(this.#nextChannel));
    return this.#nextChannel;
  }

  #request(channel: Channel, type: number, payload: Buffer): void {
    if (payload.length > maxRequestBytes) {
      throw new RangeError(`a request of ${payload.length} bytes is over ${maxRequestBytes}`);
    }
    // If the worker's timers are late, the ping goes first: else init would refuse the request.
    if (performance.now() - this.#pingedAtMs > this.#pingMs) this.#ping();
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
        if (this.#pingsUnanswered === 0) throw new FrameError("a PONG that answers no PING");
        this.#pingsUnanswered--;
        return;
      case FrameType.fenced:
        this.#close({
          why: "fenced",
          highestEpoch: new Records(frame.payload).requiredNumber(FencedTag.epoch),
        });
        return;
      case FrameType.linked:
        this.#carriers.onLinked(new Records(frame.payload), from);
        return;
      case FrameType.forwarded:
        if (!this.#forwarded) throw new FrameError("a FORWARDED that answers no FORWARD");
        this.#forwarded.resolve(new Records(frame.payload).requiredNumber(ForwardedTag.errno));
        return;
      default:
        throw new FrameError(`type ${frame.type} on the connection's own channel`);
    }
  }

  #onHello(records: Records): void {
    if (this.#greeted || !records.bytes(HelloAckTag.nonce)?.equals(this.#nonce)) {
      throw new FrameError("a HELLO_ACK that answers no HELLO");
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
      filtered: records.number(HelloAckTag.filtered) === 1,
      links: records.number(HelloAckTag.links) === 1,
      mountNamespace: records.number(HelloAckTag.mountNamespace),
      refused: records.number(HelloAckTag.refused) ?? 0,
    });
  }

  #ping(): void {
    if (this.#isClosed) return;
    if (this.#pingsUnanswered >= missedPingsAllowed) {
      this.#close({ why: "unresponsive", waitedMs: this.#options.leaseMs });
      return;
    }
    this.#pingsUnanswered++;
    this.#pingedAtMs = performance.now();
    this.send(FrameType.ping, 0, new RecordWriter().add(PingTag.leftMs, this.#leftMs).finish());
  }

  get #pingMs(): number {
    return Math.max(50, Math.floor(this.#options.leaseMs / pingsPerLease));
  }

  /** At least 1: to init, 0 means that there is no lease. */
  get #leftMs(): number {
    const { leaseMs, leaseLeftMs = () => leaseMs } = this.#options;
    return Math.max(1, Math.floor(leaseLeftMs()));
  }

  #close(end: LinkEnd): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#pinger);
    this.#hello.reject(endFault(end, this.#options));
    this.#settleClosed(end);
    for (const channel of this.#channels.values()) channel.onClosed(end);
    this.#channels.clear();
    for (const gone of this.#leftovers.values()) gone();
    this.#carriers.close(endFault(end, this.#options), { keepStdio: this.#isReleased });
  }
}

function refusal(errno: number): string {
  const why = getSystemErrorMap().get(-errno)?.[1] ?? `errno ${errno}`;
  return `init does not serve this sandbox (${why})`;
}

/** The error for a caller that needed the connection. */
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
