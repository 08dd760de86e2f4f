import type { LinkCommand } from "../link.ts";
import { AnswerHead } from "./answer-head.ts";
import { cleanText } from "./script-run.ts";

/** A command's own stderr may overtake the script's first lines, which come by another pipe. */
const maxHeldBytes = 64 * 1024;

/** Takes the script's head off a command's output and hands the rest on, in order of arrival. */
export class CommandOutput {
  readonly head = new AnswerHead();
  readonly #command: Pick<LinkCommand, "onOutput">;
  readonly #onStarted: (pid: number) => void;
  #held: Buffer[] = [];
  #heldBytes = 0;

  constructor(command: Pick<LinkCommand, "onOutput">, onStarted: (pid: number) => void) {
    this.#command = command;
    this.#onStarted = onStarted;
  }

  take(stream: "stdout" | "stderr", bytes: Buffer): void | Promise<void> {
    const { head } = this;
    if (head.answer !== undefined) {
      return head.answer.kind === "ok" ? this.#command.onOutput(stream, bytes) : undefined;
    }
    if (stream === "stderr") return this.#hold(bytes);
    const rest = head.take(bytes);
    // It changed just now, which the compiler cannot see.
    const answer = head.answer as AnswerHead["answer"];
    return answer?.kind === "ok" ? this.#begin(rest) : undefined;
  }

  /** What was said where an answer should have been. */
  complaint(): string {
    const { answer } = this.head;
    const said = answer?.kind === "garbled" ? answer.text : "";
    return cleanText(`${said} ${this.#takeHeld().toString("latin1")}`);
  }

  #begin(rest: Buffer): void | Promise<void> {
    const { onOutput } = this.#command;
    this.#onStarted(this.head.pid ?? 0);
    const early = this.#takeHeld();
    const first = early.length > 0 ? onOutput("stderr", early) : undefined;
    if (rest.length === 0) return first;
    return first === undefined ? onOutput("stdout", rest) : first.then(() => onOutput("stdout", rest));
  }

  /** Kept back until it is known whose it is; so much of it can only be an honest command's. */
  #hold(bytes: Buffer): void | Promise<void> {
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    return this.#heldBytes > maxHeldBytes ? this.#command.onOutput("stderr", this.#takeHeld()) : undefined;
  }

  #takeHeld(): Buffer {
    const all = Buffer.concat(this.#held);
    this.#held = [];
    this.#heldBytes = 0;
    return all;
  }
}
