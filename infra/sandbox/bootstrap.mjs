/** A Debian file system from packages alone, for machines that reach a Debian mirror but no container registry. */
import { spawn } from "node:child_process";
import { appendFileSync, createWriteStream, existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { PassThrough } from "node:stream";
import { outputOf } from "../setup/run-command.mjs";
import { hostSources } from "./debian-sources.mjs";
import { FILE_SYSTEM_OPTIONS, folder, SUITE } from "./recipe.mjs";

const MERGED_USR_HOOKS = "/usr/share/mmdebstrap/hooks/maybe-merged-usr";

/**
 * The file system as a tar stream. It ends only after mmdebstrap succeeded; a failure destroys it, so that the engine
 * never takes half a file system for a whole one.
 * @param {{ packages: string[], finish: boolean, log: string, program: string }} options
 *   `finish: false` leaves a plain base such as debian:bookworm-slim
 * @returns {Promise<import('node:stream').Readable>}
 */
export async function debianFileSystem(options) {
  const sources = hostSources();
  const proxy = await aptProxy();
  const argv = [
    ...FILE_SYSTEM_OPTIONS,
    ...options.packages.map((name) => `--include=${name}`),
    // As in debian:bookworm-slim: /bin is a link from the start, instead of a package (with perl) that makes it one.
    ...(existsSync(MERGED_USR_HOOKS) ? [`--hook-dir=${MERGED_USR_HOOKS}`] : []),
    // The script goes by the environment: its path would need quoting, and may be out of reach of the user that
    // mmdebstrap becomes when it does not run as root.
    ...(options.finish ? ['--customize-hook=printf "%s" "$BERTH_FINISH" | chroot "$1" sh -s'] : []),
    SUITE,
    "-",
    ...(sources.length > 0 ? ["-"] : []),
  ];
  appendFileSync(options.log, `\n$ mmdebstrap ${argv.join(" ")}\n`);
  const child = spawn(options.program, argv, {
    env: { ...process.env, ...proxy, BERTH_FINISH: readFileSync(path.join(folder, "finish.sh"), "utf8") },
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
  });
  child.stdin.on("error", () => undefined).end(`${sources.join("\n")}\n`);
  child.stderr.pipe(createWriteStream(options.log, { flags: "a" }));

  const out = new PassThrough();
  child.stdout.pipe(out, { end: false });
  child.once("error", (error) => out.destroy(error));
  // A signal to mmdebstrap alone does nothing: it waits for its children, then goes on and leaves its mounts behind.
  // Sent to the whole group, it unmounts and removes what it began.
  const stop = () => child.pid && child.exitCode === null && process.kill(-child.pid, "SIGTERM");
  process.once("exit", stop);
  child.once("close", (code, signal) => {
    process.removeListener("exit", stop);
    if (code === 0) out.end();
    else out.destroy(new Error(`mmdebstrap ended with ${signal ?? `exit code ${code}`}`));
  });
  out.once("close", stop);
  return out;
}

/** The proxy in the host's apt settings, by environment: as an apt option it would be written into the image. */
async function aptProxy() {
  const format = ["dump", "--format", "%v", "Acquire::http::Proxy"];
  const proxy = (await outputOf("apt-config", format))?.trim();
  return proxy ? { http_proxy: proxy } : {};
}
