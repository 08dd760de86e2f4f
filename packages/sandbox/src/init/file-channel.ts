import {
  CreditTag,
  type Frame,
  FrameError,
  FrameType,
  KillTag,
  Records,
  RecordWriter,
  readItems,
} from "@berth/init";
import type { LinkEnd } from "../link.ts";
import {
  Channel,
  type ChannelWire,
  type InitFailure,
  OutputWindow,
  readFailure,
  unexpectedFrame,
} from "./channel.ts";
import { OutputDelivery } from "./output-delivery.ts";
import { StdinFeed } from "./stdin-feed.ts";

const killGraceMs = 100;

export type FileEnd =
  | { readonly kind: "done"; readonly records: Records }
  | { readonly kind: "failed"; readonly failure: InitFailure }
  | { readonly kind: "broken"; readonly end: LinkEnd };

export interface FileAnswers {
  readonly onData?: (bytes: Buffer) => void | Promise<void>;
  readonly onItem?: (item: Records) => void;
}

/** One file operation, or STATS, from the request to DONE or FAIL. */
export class FileChannel extends Channel {
  readonly end: Promise<FileEnd>;
  readonly #settle: (end: FileEnd) => void;
  readonly #answers: FileAnswers;
  readonly #window: OutputWindow;
  readonly #data: OutputDelivery | undefined;
  readonly #stdin: StdinFeed;
  #ended = false;

  constructor(id: number, wire: ChannelWire, answers: FileAnswers) {
    super(id, wire);
    const { promise, resolve } = Promise.withResolvers<FileEnd>();
    this.end = promise;
    this.#settle = resolve;
    this.#answers = answers;
    this.#window = new OutputWindow((bytes) => {
      if (!this.#ended)
        wire.send(FrameType.credit, id, new RecordWriter().add(CreditTag.bytes, bytes).finish());
    });
    const { onData } = answers;
    this.#data =
      onData &&
      new OutputDelivery(
        this.#window,
        (_, bytes) => onData(bytes),
        () => this.kill(),
      );
    this.#stdin = new StdinFeed(wire, id);
  }

  /** Rejects with what the source threw; the operation is then stopped. */
  async feed(source: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    try {
      await this.#stdin.send(source);
    } catch (error) {
      this.kill();
      throw error;
    }
  }

  /** Stops the operation. A write has a moment to remove its temporary file. */
  kill(): void {
    if (this.#ended) return;
    this.wire.send(FrameType.kill, this.id, new RecordWriter().add(KillTag.graceMs, killGraceMs).finish());
  }

  onFrame(frame: Frame): boolean {
    switch (frame.type) {
      case FrameType.data:
        if (!this.#data) throw new FrameError("data for an operation that reads none");
        this.#data.push("stdout", frame.payload);
        return false;
      case FrameType.items:
        this.#window.received(frame.payload.length);
        if (!this.#answers.onItem) throw unexpectedFrame(frame);
        for (const item of readItems(frame.payload)) this.#answers.onItem(item);
        this.#window.consumed(frame.payload.length);
        return false;
      case FrameType.stdinCredit:
        this.#stdin.onCredit(new Records(frame.payload).requiredNumber(CreditTag.bytes));
        return false;
      case FrameType.done:
        // Copied: the caller reads it later, when the frame's bytes have been overwritten.
        this.#finish({ kind: "done", records: new Records(Buffer.from(frame.payload)) });
        return true;
      case FrameType.fail:
        this.#finish({ kind: "failed", failure: readFailure(frame) });
        return true;
      default:
        throw unexpectedFrame(frame);
    }
  }

  onClosed(end: LinkEnd): void {
    this.#finish({ kind: "broken", end });
  }

  #finish(end: FileEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stdin.stop();
    const busy = end.kind === "done" ? this.#data?.busy : undefined;
    if (busy === undefined) this.#settle(end);
    else void busy.then(() => this.#settle(end));
  }
}
