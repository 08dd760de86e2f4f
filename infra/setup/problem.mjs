/**
 * Why set-up cannot go on, as a message: what happened, why, and what to do about it.
 * Anything else that is thrown here is a bug of ours and keeps its stack.
 */
export class SetupProblem extends Error {
  /**
   * @param {string} what one sentence: what is wrong
   * @param {{ why?: string | undefined, fix?: string[], logFile?: string, logTail?: string }} [details]
   *   `fix` holds commands or sentences, one line each
   */
  constructor(what, details = {}) {
    super(what);
    this.name = "SetupProblem";
    this.why = details.why;
    this.fix = details.fix ?? [];
    this.logFile = details.logFile;
    this.logTail = details.logTail;
  }

  toText() {
    const lines = [this.message];
    if (this.why) lines.push(`  why: ${this.why}`);
    this.fix.forEach((line, index) => {
      lines.push(`  ${index === 0 ? "do: " : "    "} ${line}`);
    });
    if (this.logTail) lines.push("", indent(this.logTail));
    if (this.logFile) lines.push(`  full log: ${this.logFile}`);
    return lines.join("\n");
  }
}

function indent(text) {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => `    | ${line}`)
    .join("\n");
}
