import { readdir, readFile } from "node:fs/promises";

/** Ids of processes whose command line contains a text, in any container: the host sees them all. */
export async function processesWith(text: string): Promise<number[]> {
  const found = await Promise.all(
    (await readdir("/proc"))
      .filter((name) => /^\d+$/.test(name))
      .map(async (pid) => {
        const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
        return line.replaceAll("\0", " ").includes(text) ? [Number(pid)] : [];
      }),
  );
  return found.flat();
}

/** Ids of processes that have this in their command line or in their environment. */
export async function processesAbout(text: string): Promise<number[]> {
  const found = await Promise.all(
    (await readdir("/proc"))
      .filter((name) => /^\d+$/.test(name))
      .map(async (pid) => {
        const read = (file: string) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "");
        const about = await Promise.all([read("cmdline"), read("environ")]);
        return about.some((words) => words.includes(text)) ? [Number(pid)] : [];
      }),
  );
  return found.flat();
}

/** A number of seconds that no other process sleeps for: its sleep can be distinguished from all others. */
export function oddSleep(seconds: number): string {
  return `sleep ${seconds}.${process.pid}${Math.floor(Math.random() * 1e6)}`;
}
