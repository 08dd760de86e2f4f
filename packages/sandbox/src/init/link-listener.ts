import { randomBytes, timingSafeEqual } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, lchown, open } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { encodeFrame, FrameType, LinkedTag, LinkTag, RecordWriter } from "@berth/init";
import type { ByteStream } from "./byte-stream.ts";
import { SocketStream } from "./socket-stream.ts";

export interface LinkDirectory {
  /** On the host. The container has it read-only. */
  readonly directory: string;
  /** The user that may connect; absent when that is the worker's own. */
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
}

/** At an adoption the tenant's processes may connect, too. After this many connections without the proof the sandbox gets no unix link. */
const maxStrangers = 8;
const proofBytes = 16;

/**
 * A unix socket for one connection of one init, which gets its name and the proofs over the attached stdio.
 *
 *   listening ──a peer sends the proof──▶ accepted ──close()──▶ closed
 *
 * The name and both proofs are random, so a tenant can neither find the socket nor pass for init or for the worker.
 */
export class LinkListener implements AsyncDisposable {
  /** Resolves with the peer that sent the proof; with undefined when none will be accepted any more. */
  readonly accepted: Promise<ByteStream | undefined>;
  /** The payload of LINK. */
  readonly offer: Buffer;
  /** The payload of LINK_PROOF, to be sent to the accepted peer only. */
  readonly proof: Buffer;
  readonly #resolve: (stream: ByteStream | undefined) => void;
  readonly #folder: FileHandle;
  readonly #server: Server;
  readonly #expected: Buffer;
  readonly #waiting = new Set<Socket>();
  #strangers = 0;
  #settled = false;

  private constructor(folder: FileHandle, name: string, epoch: number) {
    const initProof = randomBytes(proofBytes);
    const workerProof = randomBytes(proofBytes);
    this.offer = new RecordWriter()
      .add(LinkTag.name, name)
      .add(LinkTag.initProof, initProof)
      .add(LinkTag.workerProof, workerProof)
      .finish();
    this.proof = new RecordWriter().add(LinkTag.workerProof, workerProof).finish();
    const linked = new RecordWriter().add(LinkedTag.proof, initProof).finish();
    this.#expected = encodeFrame(FrameType.linked, 0, epoch, linked);
    const { promise, resolve } = Promise.withResolvers<ByteStream | undefined>();
    this.accepted = promise;
    this.#resolve = resolve;
    this.#folder = folder;
    this.#server = createServer({ pauseOnConnect: true }, (socket) => this.#examine(socket));
    this.#server.on("error", () => this.giveUp());
  }

  static async open({ directory, owner }: LinkDirectory, epoch: number): Promise<LinkListener> {
    const name = randomBytes(proofBytes).toString("hex");
    const folder = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    const listener = new LinkListener(folder, name, epoch);
    try {
      // A socket's path has at most 107 bytes, a directory's up to 4,096.
      const path = `/proc/self/fd/${folder.fd}/${name}`;
      await new Promise<void>((resolve, reject) => {
        listener.#server.once("error", reject).listen({ path, exclusive: true }, resolve);
      });
      if (owner) await lchown(path, owner.uid, owner.gid);
      return listener;
    } catch (error) {
      await listener.close();
      throw error;
    }
  }

  /** Accepts no peer any more. */
  giveUp(): void {
    this.#settle(undefined);
  }

  /** Removes the socket. An accepted peer stays connected. */
  async close(): Promise<void> {
    this.giveUp();
    // This unlinks the socket by a path through the folder's descriptor, so the folder is closed after it.
    this.#server.close();
    for (const socket of this.#waiting) socket.destroy();
    await this.#folder.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #settle(stream: ByteStream | undefined): void {
    if (this.#settled) stream?.destroy();
    this.#settled = true;
    this.#resolve(stream);
  }

  /** The first bytes must be the expected frame, and nothing may follow before the worker has proved itself too. */
  #examine(socket: Socket): void {
    const refuse = () => {
      this.#waiting.delete(socket);
      socket.destroy();
      if (++this.#strangers === maxStrangers) this.giveUp();
    };
    this.#waiting.add(socket);
    socket.on("error", () => {});
    socket.once("close", refuse);
    let held = Buffer.alloc(0);
    const onData = (bytes: Buffer) => {
      held = Buffer.concat([held, bytes]);
      if (held.length < this.#expected.length) return;
      if (held.length !== this.#expected.length || !timingSafeEqual(held, this.#expected)) {
        socket.destroy();
        return;
      }
      socket.off("data", onData).off("close", refuse).pause();
      this.#waiting.delete(socket);
      this.#settle(new SocketStream(socket));
    };
    socket.on("data", onData);
    socket.resume();
  }
}
