/** A process id or a short answer: no honest script sends more before a line feed. */
const maxLineBytes = 256;

export type Answer =
  | { readonly kind: "ok"; readonly words: readonly string[] }
  | { readonly kind: "no"; readonly code: string }
  | { readonly kind: "garbled"; readonly text: string };

/**
 * The first two lines a script prints: its process id, and its answer.
 *
 *   (nothing) ──"17\n"──▶ pid known ──"ok …\n" or "no <code>\n"──▶ answered
 *       └──anything else, or too long──▶ garbled: no script of ours ran
 *
 * What a command prints comes after the answer, so it cannot forge one. Another process of the same tenant could, by
 * writing to the script's stdout through /proc; all it gains is a false answer to its own tenant.
 */
export class AnswerHead {
  pid: number | undefined;
  answer: Answer | undefined;
  #line = "";

  /** Takes what belongs to the head and returns the rest. */
  take(bytes: Buffer): Buffer {
    let at = 0;
    while (this.answer === undefined && at < bytes.length) {
      const feed = bytes.indexOf(0x0a, at);
      const to = feed < 0 ? bytes.length : feed;
      this.#line += bytes.toString("latin1", at, Math.min(to, at + maxLineBytes + 1));
      at = feed < 0 ? to : feed + 1;
      if (this.#line.length > maxLineBytes) this.#garbled();
      else if (feed >= 0) this.#lineRead();
    }
    return bytes.subarray(at);
  }

  /** The stream ended: whatever there is must do. */
  finish(): Answer {
    if (this.answer === undefined) this.#garbled();
    return this.answer as unknown as Answer;
  }

  #lineRead(): void {
    const line = this.#line;
    const [word, ...words] = line.split(" ");
    if (this.pid === undefined && /^[1-9]\d{0,9}$/.test(line)) this.pid = Number(line);
    else if (this.pid !== undefined && word === "ok") this.answer = { kind: "ok", words };
    else if (this.pid !== undefined && word === "no") this.answer = { kind: "no", code: words.join(" ") };
    else this.#garbled();
    this.#line = "";
  }

  #garbled(): void {
    this.answer = { kind: "garbled", text: this.#line };
  }
}
