import { StringDecoder } from "node:string_decoder";

/** Maximum size of one notification. The rest of a burst is dropped here; the answer has it. */
const messageChars = 4_000;
/** Minimum time between two notifications of output. */
const everyMs = 250;
/** Heartbeat of a silent command, so that clients with a timeout on progress keep waiting. */
const silentMs = 10_000;

export type Notify = (progress: number, message: string) => Promise<void>;

/** Sends a job's output to the client while it runs. Progress is the time since the call in milliseconds. */
export class Progress {
  readonly #notify: Notify;
  readonly #beganMs = performance.now();
  /** One for each stream: output of the other stream may arrive in the middle of a character. */
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

  /** Sends the rest, and nothing afterwards: a client cannot match a notification that comes after the answer. */
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
    // Send in order. A client that disconnected is not an error.
    this.#busy = this.#busy.then(() => this.#notify(Math.round(now) + 1, message)).catch(() => {});
  }
}
