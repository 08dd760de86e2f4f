import type { WriteStream } from "node:tty";

type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

const codes: Record<Style, string> = {
  bold: "1",
  dim: "2",
  red: "31",
  green: "32",
  yellow: "33",
  cyan: "36",
};

export interface TerminalOptions {
  readonly noColor: boolean;
  readonly json: boolean;
}

/**
 * Where a command's words go: answers to stdout, everything about the answering to stderr. Colours and moving lines only
 * where a person looks.
 */
export class Terminal {
  /** One value for a program, instead of text for a person. */
  json: boolean;
  readonly #noColor: boolean;

  constructor({ noColor, json }: TerminalOptions) {
    this.#noColor = noColor;
    this.json = json;
    // The writer gets the error from the write itself; without a listener the program would end with a stack.
    process.stdout.on("error", () => {});
    process.stderr.on("error", () => {});
  }

  /** Columns of the terminal that stderr is, if it is one: where moving lines go. */
  get noteColumns(): number | undefined {
    return this.json ? undefined : columnsOf(process.stderr);
  }

  /** The same of stdout. */
  get columns(): number | undefined {
    return columnsOf(process.stdout);
  }

  get rows(): number {
    return process.stdout.rows || 24;
  }

  style(style: Style, text: string): string {
    return this.#noColor || this.columns === undefined ? text : `\x1b[${codes[style]}m${text}\x1b[0m`;
  }

  /** Settles when it has been taken: a slow reader slows the writer, and nothing piles up here. */
  write(bytes: string | Uint8Array, to: "stdout" | "stderr" = "stdout"): Promise<void> {
    return new Promise((resolve, reject) => {
      process[to].write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  }

  async line(text: string): Promise<void> {
    await this.write(`${text}\n`);
  }

  /** About the answer, not part of it. */
  note(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  /** One value: as JSON where that was asked for, else as the text that is made of it. */
  async answer(value: unknown, text: () => string): Promise<void> {
    if (this.json) return this.line(JSON.stringify(value, null, this.columns === undefined ? 0 : 2));
    const said = text();
    if (said !== "") await this.line(said);
  }
}

/** A terminal without a size reports 0. */
function columnsOf(stream: WriteStream): number | undefined {
  return stream.isTTY ? stream.columns || 80 : undefined;
}

/** The reader of our output has gone, as `head` does when it has seen enough. */
export function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}
