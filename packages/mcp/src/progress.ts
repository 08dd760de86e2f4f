import { StringDecoder } from "node:string_decoder";

/** What one notification carries at most; the rest of a burst is left out, and the answer has it. */
const messageChars = 4_000;
/** Output is passed on this often at most. */
const everyMs = 250;
/** A silent command is reported alive this often, so that clients with a timeout on progress keep waiting. */
const silentMs = 10_000;

export type Notify = (progress: number, message: string) => Promise<void>;

/** Tells the client what a job writes while it runs. Progress is the time since the call in milliseconds. */
export class Progress {
  readonly #notify: Notify;
  readonly #beganMs = performance.now();
  /** Each stream has its own: a character may be cut where the other one goes on. */
  readonly #decoders = { stdout: new StringDecoder("utf8"), stderr: new StringDecoder("utf8") };
  readonly #timer: NodeJS.Timeout;
  #unsent = "";
  #sentMs = 0;
  #busy: Promise<void> = Promise.resolve();

  constructor(notify: Notify) {
    this.#notify = notify;
    this.#timer = setInterval(() => this.#send(), everyMs);
  }

  add(stream: "stdout" | "stderr", bytes: Uint8Array): void {
    this.#unsent = (this.#unsent + this.#decoders[stream].write(Buffer.from(bytes))).slice(-messageChars);
  }

  /** Sends what is left, and nothing afterwards: a notification behind its answer would be a stranger's. */
  async end(): Promise<void> {
    clearInterval(this.#timer);
    if (this.#unsent !== "") this.#send();
    await this.#busy;
  }

  #send(): void {
    const now = performance.now() - this.#beganMs;
    if (this.#unsent === "" && now - this.#sentMs < silentMs) return;
    const message = this.#unsent;
    this.#unsent = "";
    this.#sentMs = now;
    // In order, and a client that has gone is no reason to fail.
    this.#busy = this.#busy.then(() => this.#notify(Math.round(now) + 1, message)).catch(() => {});
  }
}
