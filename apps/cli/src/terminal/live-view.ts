import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../context.ts";

const enter = "\x1b[?1049h\x1b[?25l";
const styleStart = "\x1b[";
const styleOrCharacter = /\p{Cc}\[[0-9;]*m|./gsu;
const leave = "\x1b[?25h\x1b[?1049l";

/** Redraws a page over the whole screen, then restores the screen. Ends with q or Ctrl-C. */
export async function showLive(
  context: Context,
  everyMs: number,
  page: () => Promise<string>,
): Promise<void> {
  const { terminal, interrupts } = context;
  const ended = new AbortController();
  const end = () => ended.abort();
  const interrupted = interrupts.signal();
  interrupted.addEventListener("abort", end, { once: true });
  const keys = listenForKeys(end);
  process.stdout.write(enter);
  try {
    while (!ended.signal.aborted) {
      const lines = (await page()).split("\n").slice(0, terminal.rows - 1);
      const width = terminal.columns ?? 80;
      const drawn = lines.map((line) => `${cut(line, width)}\x1b[K`).join("\r\n");
      process.stdout.write(`\x1b[H${drawn}\x1b[J`);
      await sleep(everyMs, undefined, { signal: ended.signal }).catch(() => {});
    }
  } finally {
    process.stdout.write(leave);
    keys.stop();
    interrupted.removeEventListener("abort", end);
  }
}

/** Cuts by characters. Styles take no width, and end before the cut. */
function cut(line: string, width: number): string {
  let room = width;
  return line.replaceAll(styleOrCharacter, (part) => (part.startsWith(styleStart) || room-- > 0 ? part : ""));
}

function listenForKeys(end: () => void): { stop(): void } {
  const { stdin } = process;
  if (!stdin.isTTY) return { stop() {} };
  const onKey = (bytes: Buffer) => {
    // In raw mode Ctrl-C arrives as a byte.
    if (bytes.includes("q") || bytes.includes(3)) end();
  };
  stdin.setRawMode(true);
  stdin.resume();
  stdin.on("data", onKey);
  return {
    stop() {
      stdin.off("data", onKey);
      stdin.setRawMode(false);
      stdin.pause();
    },
  };
}
