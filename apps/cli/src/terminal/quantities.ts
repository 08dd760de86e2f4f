/** `850 ms`, `12 s`, `4 min`, `3 h`, `2 d`: only as precise as useful. */
export function spanText(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1_000;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129_600) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** `-rw-r--r--` without the type. */
export function modeText(mode: number): string {
  const letters = "rwxrwxrwx";
  return [...letters].map((letter, index) => ((mode >> (8 - index)) & 1 ? letter : "-")).join("");
}

/** `1 worker`, `3 workers`. */
export function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? "" : thing.endsWith("x") ? "es" : "s"}`;
}
