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
 * A command's output: answers go to stdout, messages to stderr. Colours and moving lines are used
 * only on a terminal.
 */
export class Terminal {
  /** With --json a command prints one value for a program instead of text. */
  json: boolean;
  readonly #noColor: boolean;

  constructor({ noColor, json }: TerminalOptions) {
    this.#noColor = noColor;
    this.json = json;
    // The write itself reports the error to its caller; without a listener it would also crash the program.
    process.stdout.on("error", () => {});
    process.stderr.on("error", () => {});
  }

  /** Width of stderr if it is a terminal, for progress lines. */
  get noteColumns(): number | undefined {
    return this.json ? undefined : columnsOf(process.stderr);
  }

  /** Width of stdout if it is a terminal. */
  get columns(): number | undefined {
    return columnsOf(process.stdout);
  }

  get rows(): number {
    return process.stdout.rows || 24;
  }

  style(style: Style, text: string): string {
    return this.#noColor || this.columns === undefined ? text : `\x1b[${codes[style]}m${text}\x1b[0m`;
  }

  /** Resolves when the reader took it: backpressure slows the writer, and nothing piles up here. */
  write(bytes: string | Uint8Array, to: "stdout" | "stderr" = "stdout"): Promise<void> {
    return new Promise((resolve, reject) => {
      process[to].write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  }

  async line(text: string): Promise<void> {
    await this.write(`${text}\n`);
  }

  /** A message, which is not part of the answer. */
  note(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  /** Prints one value: with --json as JSON, else as text. */
  async answer(value: unknown, text: () => string): Promise<void> {
    if (this.json) return this.line(JSON.stringify(value, null, this.columns === undefined ? 0 : 2));
    const plain = text();
    if (plain !== "") await this.line(plain);
  }
}

/** A terminal of unknown size reports 0. */
function columnsOf(stream: WriteStream): number | undefined {
  return stream.isTTY ? stream.columns || 80 : undefined;
}

/** The reader closed our output, as `head` does after its last line. */
export function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}
