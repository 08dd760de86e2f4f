/**
 * What a person sees of set-up: one line per step, and signs of life on the slow ones. On a terminal the line being
 * worked on ticks in place; elsewhere (CI) a line every ten seconds, since a silent CI job looks hung.
 */
const NAME_WIDTH = 14;
const TICK_MS = 1_000;
const QUIET_MS = 10_000;

export class Report {
  /** @param {NodeJS.WriteStream} out */
  constructor(out) {
    this.out = out;
    this.live = Boolean(out.isTTY);
  }

  /**
   * @param {string} name
   * @param {string} text
   */
  line(name, text) {
    if (this.live) this.out.write("\r\x1b[2K");
    this.out.write(`${name.padEnd(NAME_WIDTH)}${text}\n`);
  }

  /**
   * Shows that `name` is being worked on until `work` ends; `work` may say what it is at with `progress(text)`.
   * @template T
   * @param {string} name
   * @param {(progress: (text: string) => void) => Promise<T>} work
   */
  async during(name, work) {
    const startedAt = Date.now();
    let text = "working";
    let shownAt = startedAt;
    const show = () => {
      shownAt = Date.now();
      const elapsed = `${text} … ${Math.round((shownAt - startedAt) / 1000)} s`;
      if (this.live)
        this.out.write(
          `\r\x1b[2K${name.padEnd(NAME_WIDTH)}${elapsed}`.slice(0, (this.out.columns ?? 80) + 4),
        );
      else this.out.write(`${name.padEnd(NAME_WIDTH)}${elapsed}\n`);
    };
    const timer = setInterval(() => {
      if (this.live || Date.now() - shownAt >= QUIET_MS) show();
    }, TICK_MS);
    try {
      return await work((next) => {
        const changed = next !== text;
        text = next;
        if (changed) show();
      });
    } finally {
      clearInterval(timer);
      if (this.live) this.out.write("\r\x1b[2K");
    }
  }
}
