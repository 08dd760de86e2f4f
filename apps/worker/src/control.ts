import { controlChannel, type WorkerIds, type WorkerInstance, type WorkerStatus } from "@berth/ledger";
import { type ControlMessage, controlMessage } from "@berth/protocol";
import { listen, type Redis } from "@berth/redis";

export interface ControlOptions {
  readonly ids: Pick<WorkerIds, "answer">;
  /** A connection of its own: one that listens can do nothing else. */
  readonly subscriber: Redis;
  readonly self: WorkerInstance;
  readonly onMessage: (message: ControlMessage) => void;
  /** Called after a lost connection is back: its messages are lost, so receivers read the state again. */
  readonly onBack: () => void;
  readonly describe: () => WorkerStatus;
}

const answerKeptMs = 30_000;

/** Receives the control messages to workers: cancel, pause, drain, ping. */
export class Control {
  readonly #options: ControlOptions;
  readonly #stopping = new AbortController();

  constructor(options: ControlOptions) {
    this.#options = options;
    const { subscriber, onBack } = options;
    subscriber.on("message", (_channel: string, text: string) => this.#receive(text));
    let lost = false;
    subscriber.on("close", () => {
      lost = true;
    });
    subscriber.on("ready", () => {
      if (lost) onBack();
      lost = false;
    });
  }

  async start(): Promise<void> {
    await listen(this.#options.subscriber, controlChannel, this.#stopping.signal);
  }

  stop(): void {
    this.#stopping.abort();
  }

  #receive(text: string): void {
    const { self, onMessage } = this.#options;
    const parsed = controlMessage.safeParse(parseJson(text));
    // Unknown messages are a newer version's.
    if (!parsed.success) return;
    const message = parsed.data;
    if ("worker" in message && message.worker !== self.worker) return;
    if (message.type === "ping") void this.#answer(message.answer).catch(() => {});
    else onMessage(message);
  }

  async #answer(id: string): Promise<void> {
    const { ids, self, describe } = this.#options;
    await ids.answer(id, self, describe(), answerKeptMs);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
